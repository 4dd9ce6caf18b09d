"""Rows of requests: written by the thousand, sorted, filtered, paged.

What is written was told by a process that read a hostile file: each value is held to its type
and size here, and what does not fit becomes None, which means that it is not known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import orjson
from sqlalchemy import ColumnElement, and_, delete, insert, tuple_, update
from sqlalchemy.orm import Mapped, aliased
from sqlmodel import Session, col, func, select
from sqlmodel.sql.expression import SelectOfScalar

from app.domain.dumps.recorded import Row
from app.errors import NotFound
from app.store.dump_tables import DumpRequest

Sort = Literal["index", "prompt_tokens", "completion_tokens", "started_at", "elapsed_seconds"]
Place = tuple[float | None, int]  # the sorted figure and the index of the last row of a page
SORTS: tuple[Sort, ...] = get_args(Sort)
STATES = ("finished", "unfinished", "aborted")
LONGEST_NAME = 200
LONGEST_JSON_BYTES = 4000  # of the sampling parameters or the problems of one request
ROWS_AT_ONCE = 5000  # deleted in one transaction
_LARGEST = 2**63
_TABLE = DumpRequest.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which requests to list; None does not restrict."""

    state: str | None = None
    feature: str | None = None
    rid: str | None = None
    suspect: bool = False  # True: suspects only
    rid_part: str | None = None  # somewhere in the rid


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows in order. *after* is the place to go on from; None: these were the last."""

    rows: Sequence[DumpRequest]
    after: Place | None


@dataclass(frozen=True, slots=True)
class Shared:
    """One request that is in two dumps, found by its rid."""

    rid: str
    one: DumpRequest
    other: DumpRequest


EVERY = Wanted()


def put_rows(session: Session, dump_id: int, rows: Iterable[Row]) -> int:
    """Write *rows* of a dump in the caller's transaction; how many there were."""
    values = [_values(dump_id, row) for row in rows]
    if values:
        session.connection().execute(insert(_TABLE), values)
    return len(values)


def drop_rows(session: Session, dump_id: int, *, most: int = ROWS_AT_ONCE) -> bool:
    """Delete rows of a dump, at most *most* of them; whether there may be more."""
    query = select(DumpRequest.position).where(DumpRequest.dump_id == dump_id)
    last = session.exec(query.order_by(col(DumpRequest.position)).offset(most - 1).limit(1)).first()
    doomed = delete(DumpRequest).where(col(DumpRequest.dump_id) == dump_id)
    if last is not None:
        doomed = doomed.where(col(DumpRequest.position) <= last)
    session.execute(doomed)
    return last is not None


def mark_suspects(session: Session, dump_id: int, indexes: Iterable[int]) -> None:
    """Let the rows at *indexes* be suspects, the most telling first."""
    for rank, index in enumerate(dict.fromkeys(indexes)):
        marked = update(DumpRequest).where(
            col(DumpRequest.dump_id) == dump_id, col(DumpRequest.position) == index
        )
        session.execute(marked.values(suspect_rank=rank))


def requests_of(  # noqa: PLR0913
    session: Session,
    dump_id: int,
    wanted: Wanted = EVERY,
    *,
    sort: Sort = "index",
    descending: bool = False,
    after: Place | None = None,
    limit: int = 100,
) -> Page:
    """A page of requests. Rows that do not know the figure sorted by come last, by index."""
    query = select(DumpRequest).where(*_conditions(dump_id, wanted))
    if sort == "index":
        found = session.exec(_by_index(query, after, descending=descending).limit(limit + 1)).all()
        return _page(found, sort, limit)
    column = col(getattr(DumpRequest, sort))
    rows: list[DumpRequest] = []
    if after is None or after[0] is not None:
        known = _by_figure(query.where(column.is_not(None)), column, after, descending=descending)
        rows += session.exec(known.limit(limit + 1)).all()
        after = None
    if len(rows) <= limit:
        unknown = _by_index(query.where(column.is_(None)), after, descending=False)
        rows += session.exec(unknown.limit(limit + 1 - len(rows))).all()
    return _page(rows, sort, limit)


def count_of(session: Session, dump_id: int, wanted: Wanted = EVERY) -> int:
    """How many requests of a dump are *wanted*."""
    query = select(func.count()).select_from(DumpRequest)
    return session.exec(query.where(*_conditions(dump_id, wanted))).one()


def request_at(session: Session, dump_id: int, index: int) -> DumpRequest:
    """The request at *index* of a dump; raises NotFound."""
    row = session.get(DumpRequest, (dump_id, index)) if index < _LARGEST else None
    if row is None:
        raise NotFound(f"Dump {dump_id} has no request {index}.")
    return row


def suspects_of(session: Session, dump_id: int) -> Sequence[DumpRequest]:
    """The suspects of a dump, the most telling first; why each is one stands in its document."""
    query = select(DumpRequest).where(*_conditions(dump_id, Wanted(suspect=True)))
    return session.exec(query.order_by(col(DumpRequest.suspect_rank))).all()


def figures_of(
    session: Session, dump_id: int, name: Sort, wanted: Wanted = EVERY
) -> list[int | float]:
    """One figure of every request that knows it, in the order of the file: for histograms."""
    column = col(DumpRequest.position if name == "index" else getattr(DumpRequest, name))
    query = select(column).where(*_conditions(dump_id, wanted), column.is_not(None))
    return list(session.exec(query.order_by(col(DumpRequest.position))))


def span_of(session: Session, dump_id: int) -> tuple[float | None, float | None]:
    """The first start and the last start or finish that a dump tells of, in epoch seconds."""
    started, finished = col(DumpRequest.started_at), col(DumpRequest.finished_at)
    query = select(func.min(started), func.max(started), func.max(finished))
    first, *last = session.exec(query.where(DumpRequest.dump_id == dump_id)).one()
    return first, max((one for one in last if one is not None), default=None)


def shared_requests(
    session: Session,
    one_id: int,
    other_id: int,
    *,
    state: str | None = None,
    after: int = -1,
    limit: int = 100,
) -> list[Shared]:
    """Requests whose rid is in both dumps, by their index in the first, from behind *after*.

    *state*: only those that had it both times.
    """
    one, other = DumpRequest, aliased(DumpRequest)
    query = (
        select(one, other)
        .join(other, and_(col(other.rid) == col(one.rid), col(other.dump_id) == other_id))
        # SQLite is to look each rid up. Said not to be null, or ordered by an index, it would walk
        # all rows of the other dump for each row of this one.
        .where(one.dump_id == one_id, one.position > after)
        .order_by(col(one.position), col(other.position) + 0)
        .limit(limit)
    )
    if state is not None:
        query = query.where(one.state == state, func.coalesce(other.state, "") == state)
    return [Shared(str(left.rid), left, right) for left, right in session.exec(query)]


def count_shared(session: Session, one_id: int, other_id: int) -> int:
    """How many requests of the first dump are in the other one too."""
    rids = select(DumpRequest.rid).where(DumpRequest.dump_id == other_id)
    query = select(func.count()).where(
        DumpRequest.dump_id == one_id, col(DumpRequest.rid).in_(rids)
    )
    return session.exec(query).one()


def row_of(request: DumpRequest) -> dict[str, Any]:
    """*request* with the names and types of ``domain.dumps.recorded.Row``."""
    told = {name: getattr(request, name) for name in Row.__annotations__ if name != "index"}
    return told | {
        "index": request.position,
        "sampling": orjson.loads(request.sampling) if request.sampling else {},
        "features": [word for word in request.features.split(",") if word],
        "problems": orjson.loads(request.problems) if request.problems else [],
    }


def _conditions(dump_id: int, wanted: Wanted) -> list[ColumnElement[bool]]:
    found = [col(DumpRequest.dump_id) == dump_id]
    if wanted.state is not None:
        found.append(col(DumpRequest.state) == wanted.state)
    if wanted.rid is not None:
        found.append(col(DumpRequest.rid) == wanted.rid)
    if wanted.rid_part is not None:
        found.append(col(DumpRequest.rid).contains(wanted.rid_part, autoescape=True))
    if wanted.feature is not None:
        found.append(col(DumpRequest.features).contains(f",{wanted.feature},", autoescape=True))
    if wanted.suspect:
        found.append(col(DumpRequest.suspect_rank).is_not(None))
    return found


def _by_index(
    query: SelectOfScalar[DumpRequest], after: Place | None, *, descending: bool
) -> SelectOfScalar[DumpRequest]:
    position = col(DumpRequest.position)
    if after is not None:
        query = query.where(position < after[1] if descending else position > after[1])
    return query.order_by(position.desc() if descending else position)


def _by_figure(
    query: SelectOfScalar[DumpRequest],
    column: Mapped[Any],
    after: Place | None,
    *,
    descending: bool,
) -> SelectOfScalar[DumpRequest]:
    """Equal figures by index, in the same direction: both databases walk one index."""
    position = col(DumpRequest.position)
    if after is not None:
        place = tuple_(*after)
        here = tuple_(column, position)
        query = query.where(here < place if descending else here > place)
    if descending:
        return query.order_by(column.desc(), position.desc())
    return query.order_by(column, position)


def _page(rows: Sequence[DumpRequest], sort: Sort, limit: int) -> Page:
    if len(rows) <= limit:
        return Page(rows, None)
    last = rows[limit - 1]
    figure = None if sort == "index" else getattr(last, sort)
    return Page(rows[:limit], (figure, last.position))


def _values(dump_id: int, row: Row) -> dict[str, Any]:
    state = row["state"]
    return {
        "dump_id": dump_id,
        "position": row["index"],
        "rid": _name(row["rid"]),
        "state": state if state in STATES else None,
        "endpoint": _name(row["endpoint"]) or "",
        "prompt_tokens": _count(row["prompt_tokens"]),
        "completion_tokens": _count(row["completion_tokens"]),
        "cached_tokens": _count(row["cached_tokens"]),
        "prompt_characters": _count(row["prompt_characters"]),
        "stream": row["stream"] if isinstance(row["stream"], bool) else None,
        "started_at": _seconds(row["started_at"]),
        "finished_at": _seconds(row["finished_at"]),
        "elapsed_seconds": _seconds(row["elapsed_seconds"]),
        "finish_reason": _name(row["finish_reason"]),
        "sampling": _json(row["sampling"]) if row["sampling"] else "",
        "features": f",{','.join(row['features'])},"[:LONGEST_NAME] if row["features"] else "",
        "problems": _json(row["problems"]) if row["problems"] else "",
    }


def _name(value: object) -> str | None:
    return value[:LONGEST_NAME].replace("\0", "\ufffd") if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _LARGEST else None


def _seconds(value: object) -> float | None:
    """A NaN is not between any two numbers."""
    return value if isinstance(value, float | int) and -_LARGEST < value < _LARGEST else None


def _json(value: Mapping[str, Any] | Sequence[str]) -> str:
    """Too long, it is left out whole: half of it would be read as all."""
    told = orjson.dumps(value)
    return told.decode() if len(told) <= LONGEST_JSON_BYTES else ""
