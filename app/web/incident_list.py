"""Pages: the incident list, whole and as the fragment that keeps it fresh."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlmodel import Session

from app.domain.finder import MAX_LENGTH, TABS, read_filter
from app.errors import Malformed
from app.store.audit import Actor
from app.store.incident_list import (
    Cursor,
    Listing,
    count_tabs,
    known_targets,
    list_incidents,
)
from app.web import paging
from app.web.dependencies import AppShell, Now, Reader, Reading
from app.web.render import render
from app.web.views.incident_list import (
    Asked,
    ChangedFragment,
    Headline,
    ListFragment,
    ListPage,
    ListRow,
    Tab,
    changed_since,
    mark_of,
)
from app.web.views.tab import icon_of_list

PAGE_ROWS = 40
MARK_MAX_LENGTH = 4 + 4 * PAGE_ROWS
_PLACES: dict[str, tuple[type, ...]] = {"all": (int,), "resolved": (str, int)}

router = APIRouter(include_in_schema=False)


async def _asked(
    state: Annotated[str, Query(max_length=20)] = "open",
    q: Annotated[str, Query(max_length=MAX_LENGTH)] = "",
    after: Annotated[str, Query(max_length=400)] = "",
) -> Asked:
    return Asked(state if state in TABS else "open", q.strip(), after)


AskedList = Annotated[Asked, Depends(_asked)]
Mark = Annotated[str, Query(max_length=MARK_MAX_LENGTH)]


@router.get("/", name="incidents")
def incidents_page(
    request: Request, shell: AppShell, actor: Reader, asked: AskedList, session: Reading
) -> Response:
    part = _fragment(session, actor, asked, shell.now)
    return render(request, ListPage(shell=shell, **vars(part)))


@router.get("/incidents/list", name="incident_list")
def list_fragment(
    request: Request, actor: Reader, asked: AskedList, session: Reading, now: Now, mark: Mark = ""
) -> Response:
    """The list as it is now; 204 when it shows the same, ages included."""
    part = _fragment(session, actor, asked, now, alone=True)
    if part.mark == mark:
        return Response(status_code=204)
    return render(request, part)


@router.get("/incidents/changed", name="incidents_changed")
def changed_fragment(
    request: Request, actor: Reader, asked: AskedList, session: Reading, now: Now, mark: Mark
) -> Response:
    """How many rows changed: asked instead of the list while a hand is on it."""
    rows, _ = _rows(session, actor, asked, now, seen={})
    changed = changed_since(mark, rows)
    return render(request, ChangedFragment(changed=changed, asked=asked, mark=mark))


def _fragment(
    session: Session, actor: Actor, asked: Asked, now: datetime, *, alone: bool = False
) -> ListFragment:
    counts = count_tabs(session, actor.name)
    targets = known_targets(session)
    seen = {one.name: one.seen for one in targets if one.seen}
    rows, next_place = _rows(session, actor, asked, now, seen=seen)
    headline = Headline.of(counts, targets, now)
    failing = counts.failing
    return ListFragment(
        headline=headline,
        tabs=[Tab(name, counts.tabs[name], name == asked.tab) for name in TABS],
        rows=rows,
        now=now,
        asked=asked,
        next_cursor=paging.encode(next_place) if next_place else None,
        mark=mark_of(rows, now),
        changed=0,
        may_act=actor.role != "reader",
        tab_title=f"{f'({failing} failing) ' if failing else ''}{headline.says}" if alone else None,
        tab_icon=icon_of_list(failing),
    )


def _rows(
    session: Session,
    actor: Actor,
    asked: Asked,
    now: datetime,
    *,
    seen: Mapping[str, dict[str, Any]],
) -> tuple[list[ListRow], Cursor | None]:
    listing = Listing(asked.tab, actor.name, read_filter(asked.text))
    rows, place = list_incidents(
        session, listing, limit=PAGE_ROWS, after=place_of(asked.tab, asked.after)
    )
    return [ListRow.of(row, seen.get(row.targets_told), now) for row in rows], place


def place_of(tab: str, cursor: str) -> Cursor | None:
    """The place that *cursor* names in that tab; raises Malformed for one of another list."""
    if not cursor:
        return None
    place = paging.decode(cursor)
    kinds = _PLACES.get(tab, (int, str, int))
    if tuple(map(type, place)) != kinds or not _is_number(place[-1]):
        raise Malformed("This place is of another list.", fix="Start at its first page.")
    if tab == "resolved":
        _check_moment(str(place[0]))
    return place


def _is_number(part: object) -> bool:
    return isinstance(part, int) and 0 < part < 2**63


def _check_moment(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise Malformed("This place holds no time.", fix="Start at its first page.") from error
