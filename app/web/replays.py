"""Pages: a replay, its live progress; starting, cancelling and going on with it."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

from app.store import database, replays
from app.store.stores import Stores
from app.store.tables import Replay
from app.web import replay_list
from app.web.answers import done
from app.web.dependencies import (
    RANKS,
    AppShell,
    AppStores,
    Now,
    Operator,
    Reader,
    Reading,
    Writing,
)
from app.web.jobs import Live
from app.web.live import Following
from app.web.render import render
from app.web.replay_page import replay_page, rest_of
from app.web.replay_progress import progress_of
from app.web.replay_standing import replay_told, standing
from app.web.replay_words import title_of
from app.web.views.jobs import Following as HowFollowed
from app.web.views.replays import ReplayProgress, ReplayRest

LONGEST_NAME = replays.LONGEST_TYPED

router = APIRouter(include_in_schema=False)
router.include_router(replay_list.router)

Trial = Annotated[int | None, Query(ge=1, le=1000)]
Draw = Annotated[bool, Query()]


class TypedConfirm(BaseModel):
    """The names of targets that a person typed."""

    confirm: list[Annotated[str, Field(max_length=LONGEST_NAME)]] = Field(default=[], max_length=4)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one for one in self.confirm if one.strip())


@router.get("/replays/{replay_id:int}", name="replay")
def show_replay(
    request: Request,
    replay_id: int,
    session: Reading,
    shell: AppShell,
    trial: Trial = None,
    draw: Draw = False,  # noqa: FBT002  (a query)
) -> Response:
    return render(request, replay_page(session, shell, replay_id, trial=trial, draw=draw))


@router.get("/replays/{replay_id:int}/progress", name="replay_progress")
def show_progress(
    request: Request, replay_id: int, session: Reading, actor: Reader, now: Now
) -> Response:
    """For pages that cannot follow the events; loads them anew at its end."""
    view = _progress(session, replay_id, actor.role, now, "tick")
    answer = render(request, view)
    if not view.replay.unfinished:
        answer.headers["HX-Refresh"] = "true"
    return answer


@router.get("/replays/{replay_id:int}/rest", name="replay_rest")
def show_rest(  # noqa: PLR0913  (what it needs is asked for by name)
    request: Request,
    *,
    replay_id: int,
    session: Reading,
    actor: Reader,
    now: Now,
    trial: Trial = None,
    draw: Draw = False,
) -> Response:
    """Figures, trials and errors as they are now."""
    stands = standing(session, replay_id)
    rest = rest_of(session, stands, trial=trial, draw=draw)
    may_act = RANKS[actor.role] >= RANKS["operator"]
    return render(request, ReplayRest(replay_told(stands, now), rest, may_act))


def _job_of(replay_id: int, stores: AppStores) -> int | None:
    """The job to follow; the session ends before the stream begins. Raises NotFound."""
    with database.reading(stores.engine) as session:
        return replays.get_replay(session, replay_id).job_id


async def _seat(
    job_id: Annotated[int | None, Depends(_job_of)], live: Live
) -> AsyncGenerator[Following | None]:
    """A place among the followers, None where there is none left; given up with the response."""
    if live.full or job_id is None:
        yield None
        return
    async with live.following(job_id) as following:
        yield following


Seat = Annotated[Following | None, Depends(_seat)]


@router.get("/replays/{replay_id:int}/events", name="replay_events",
            response_class=EventSourceResponse)  # fmt: skip
async def replay_events(
    request: Request, replay_id: int, actor: Reader, stores: AppStores, seat: Seat
) -> AsyncGenerator[ServerSentEvent]:
    """The progress as HTML at each change; beside it the events ended and full."""
    if seat is None:
        yield ServerSentEvent(event="full", raw_data="")
        return
    async for _ in seat.states():
        view = await run_in_threadpool(_progress_now, stores, replay_id, actor.role)
        if not view.replay.unfinished:
            yield ServerSentEvent(event="ended", raw_data=view.replay.state)
            return
        yield ServerSentEvent(raw_data=bytes(render(request, view).body).decode())


@router.post("/replays/{replay_id:int}/start", name="start_replay")
def start_replay(  # noqa: PLR0913
    request: Request,
    *,
    replay_id: int,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
    typed: Annotated[TypedConfirm, Form()],
) -> Response:
    """Send what was looked at; this is the consent to it."""
    replay = _held(session, replay_id)
    if replay.state not in replays.AT_WORK:  # else somebody pressed it in the same moment
        replays.start_replay(session, stores, replay, typed.names, actor=actor, at=now)
    return _to(request, replay_id)


@router.post("/replays/{replay_id:int}/cancel", name="cancel_replay")
def cancel_replay(
    request: Request, replay_id: int, session: Writing, actor: Operator, now: Now
) -> Response:
    replays.cancel_replay(session, replays.get_replay(session, replay_id), actor=actor, at=now)
    return _to(request, replay_id)


@router.post("/replays/{replay_id:int}/resume", name="resume_replay")
def resume_replay(  # noqa: PLR0913
    request: Request,
    *,
    replay_id: int,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
    typed: Annotated[TypedConfirm, Form()],
) -> Response:
    """Go on where it stopped; this is the consent to send once more."""
    replay = _held(session, replay_id)
    if replay.state not in replays.AT_WORK:
        replays.resume_replay(session, stores, replay, typed.names, actor=actor, at=now)
    return _to(request, replay_id)


def _held(session: Session, replay_id: int) -> Replay:
    """The replay as it is now, nobody else's to change until the answer."""
    replay = replays.get_replay(session, replay_id)
    session.refresh(replay, with_for_update=True)
    return replay


def _to(request: Request, replay_id: int) -> Response:
    return done(request, to=request.url_for("replay", replay_id=replay_id).path)


def _progress(
    session: Session, replay_id: int, role: str, now: datetime, following: HowFollowed
) -> ReplayProgress:
    stands = standing(session, replay_id)
    return ReplayProgress(
        finding=title_of(stands),
        replay=replay_told(stands, now),
        progress=progress_of(session, stands, now),
        following=following,
        may_act=RANKS[role] >= RANKS["operator"],
        names_tab=True,
    )


def _progress_now(stores: Stores, replay_id: int, role: str) -> ReplayProgress:
    with database.reading(stores.engine) as session:
        return _progress(session, replay_id, role, datetime.now(UTC), "events")
