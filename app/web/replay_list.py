"""Pages: all replays, newest first."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.store.replay_list import ListedReplay, newest_replays
from app.store.replays import AT_WORK, LARGEST_ID, STARTABLE
from app.web.dependencies import AppShell, Reader, Reading
from app.web.formats import visible
from app.web.incident_replays import line_of
from app.web.render import render
from app.web.views.replay_list import ReplayRow, ReplaysPage

ON_A_PAGE = 40
_OPEN = (*AT_WORK, *STARTABLE, "interrupted")

router = APIRouter(include_in_schema=False)


@router.get("/replays", name="replays")
def replays_page(
    request: Request,
    actor: Reader,
    shell: AppShell,
    session: Reading,
    before: Annotated[int | None, Query(ge=1, lt=LARGEST_ID)] = None,
) -> Response:
    found = newest_replays(session, limit=ON_A_PAGE + 1, before=before)
    rows = [_row(one) for one in found[:ON_A_PAGE]]
    page = ReplaysPage(
        shell=shell,
        rows=rows,
        finding=_finding(rows, before),
        still_open=sum(row.is_open for row in rows),
        older_than=rows[-1].line.id if len(found) > ON_A_PAGE else None,
        is_newest=before is None,
        may_act=shell.may_act,
        now=shell.now,
    )
    return render(request, page)


def _row(one: ListedReplay) -> ReplayRow:
    return ReplayRow(
        line=line_of(one.replay, one.targets),
        incident_id=one.replay.incident_id,
        incident_title=visible(one.incident_title),
        is_open=one.replay.state in _OPEN,
    )


def _finding(rows: Sequence[ReplayRow], before: int | None) -> str:
    if before is not None:
        return f"Replays before replay {before}" if rows else f"No replay before replay {before}"
    if not rows:
        return "No replay was asked for yet"
    newest = rows[0].line.headline
    return newest if newest.startswith("Replay ") else f"Newest replay: {newest}"
