"""The incident list: its page, its counts and its headline, each one bounded query.

The order is that of the night: failing first, then unknown, then slow; within a rank the
unacknowledged first, then the youngest. An index on (rank, state, assignee, id) holds all that
the order and the counts need, so that neither reads a row it does not show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, case, cast, or_
from sqlmodel import Session, col, func, select

from app.domain.finder import NO_FILTER, TABS, Filter
from app.domain.urgency import Rank
from app.store.tables import Incident, IncidentTarget, Target

Cursor = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Which incidents to list: a tab, for whom, and the filter."""

    tab: str = "open"
    me: str = ""
    filter: Filter = NO_FILTER


@dataclass(frozen=True, slots=True)
class Counts:
    """How many incidents each tab holds, and how many of the open ones have each rank."""

    tabs: dict[str, int]
    ranks: dict[int, int]

    @property
    def failing(self) -> int:
        return self.ranks.get(Rank.FAILING, 0)


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """A registered target: what was last seen there, and whether an open incident fails on it."""

    name: str
    seen: dict[str, Any] | None
    failing: bool


def list_incidents(
    session: Session, listing: Listing, *, limit: int, after: Cursor | None = None
) -> tuple[Sequence[Incident], Cursor | None]:
    """Up to *limit* incidents and the cursor of the next page; None on the last page."""
    wanted = [*_of_tab(listing), *_of_filter(listing.filter)]
    if after is not None:
        wanted.append(_later(listing.tab, after))
    order = _order(listing.tab)
    # The inner query is answered by the index alone; only rows that are shown are read.
    numbers = select(Incident.id).where(*wanted).order_by(*order).limit(limit + 1)
    query = select(Incident).where(col(Incident.id).in_(numbers)).order_by(*order)
    rows = session.exec(query).all()
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], _cursor(listing.tab, rows[limit - 1])


def count_tabs(session: Session, me: str) -> Counts:
    """The counts beside the tabs. Only open incidents are grouped: the others only grow."""
    mine = func.sum(case((col(Incident.assignee) == me, 1), else_=0))
    query = (
        select(Incident.rank, Incident.state, func.count(), mine)
        .where(Incident.rank < Rank.RESOLVED)
        .group_by(col(Incident.rank), col(Incident.state))
    )
    tabs = dict.fromkeys(TABS, 0)
    ranks: dict[int, int] = {}
    for rank, state, count, of_me in session.exec(query):
        tabs["open"] += count
        tabs["unacknowledged"] += count if state == "open" else 0
        tabs["mine"] += of_me
        ranks[rank] = ranks.get(rank, 0) + count
    tabs["all"] = session.exec(select(func.count()).select_from(Incident)).one()
    tabs["resolved"] = tabs["all"] - tabs["open"]
    return Counts(tabs, ranks)


def known_targets(session: Session) -> list[KnownTarget]:
    """Every registered target with what was last seen there."""
    failing = (
        select(IncidentTarget.target_id)
        .join(Incident, col(Incident.id) == col(IncidentTarget.incident_id))
        .where(Incident.rank == Rank.FAILING)
    )
    query = (
        select(Target.name, Target.seen, col(Target.id).in_(failing))
        .where(col(Target.deleted_at).is_(None))
        .order_by(col(Target.name))
    )
    return [KnownTarget(*row) for row in session.exec(query)]


def _of_tab(listing: Listing) -> list[ColumnElement[bool]]:
    match listing.tab:
        case "all":
            return []
        case "resolved":
            return [col(Incident.state) == "resolved"]
        case "unacknowledged":
            return [col(Incident.rank) < Rank.RESOLVED, col(Incident.state) == "open"]
        case "mine":
            return [col(Incident.rank) < Rank.RESOLVED, col(Incident.assignee) == listing.me]
        case _:
            return [col(Incident.rank) < Rank.RESOLVED]


def _of_filter(wanted: Filter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.number is not None:
        found.append(col(Incident.id) == wanted.number)
    if wanted.problem_class is not None:
        found.append(_begins(Incident.problem_class, wanted.problem_class))
    if wanted.severity is not None:
        found.append(_begins(Incident.severity, wanted.severity))
    if wanted.state is not None:
        found.append(col(Incident.state) == wanted.state)
    if wanted.target is not None:
        found.append(col(Incident.targets_told).icontains(wanted.target, autoescape=True))
    return found + [_mentions(word) for word in wanted.words]


def _begins(column: str | None, word: str) -> ColumnElement[bool]:
    return col(column).is_(None) if word == "?" else col(column).istartswith(word, autoescape=True)


def _mentions(word: str) -> ColumnElement[bool]:
    return or_(
        col(Incident.title).icontains(word, autoescape=True),
        col(Incident.targets_told).icontains(word, autoescape=True),
        cast(Incident.headline, Text).icontains(word, autoescape=True),
        cast(Incident.tags, Text).icontains(word, autoescape=True),
    )


def _order(tab: str) -> list[ColumnElement[Any]]:
    if tab == "resolved":
        return [col(Incident.changed_at).desc(), col(Incident.id).desc()]
    if tab == "all":
        return [col(Incident.id).desc()]
    # "open" sorts after "acknowledged" and "mitigated", so that descending puts it first.
    return [col(Incident.rank).asc(), col(Incident.state).desc(), col(Incident.id).desc()]


def _cursor(tab: str, row: Incident) -> Cursor:
    if tab == "resolved":
        return (row.changed_at.isoformat(), row.id)
    if tab == "all":
        return (row.id,)
    return (row.rank, row.state, row.id)


def _later(tab: str, after: Cursor) -> ColumnElement[bool]:
    number = col(Incident.id) < int(after[-1])
    if tab == "all":
        return number
    if tab == "resolved":
        changed, moment = col(Incident.changed_at), datetime.fromisoformat(after[0])
        return or_(changed < moment, and_(changed == moment, number))
    rank, state = col(Incident.rank), col(Incident.state)
    return and_(
        rank >= after[0],
        or_(
            rank > after[0],
            state < str(after[1]),
            and_(state == str(after[1]), number),
        ),
    )
