"""Pages: one job, its live progress, cancelling and resuming it."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from sqlmodel import Session

from app.domain.playbook import KINDS, Diagnose, IngestDump, ReplayRequests
from app.store import database
from app.store.bundles import bundle_of_job
from app.store.diagnostics import of_job
from app.store.jobs import get_job, request_cancel, request_resume
from app.store.tables import Job
from app.store.targets import get_target
from app.web.answers import done
from app.web.dependencies import RANKS, AppShell, AppStores, Now, Operator, Reader, Reading, Writing
from app.web.live import Following, LiveJobs
from app.web.render import render
from app.web.views.jobs import JobPage, JobProgress, JobTold

router = APIRouter(include_in_schema=False)


async def _live(request: Request, stores: AppStores) -> LiveJobs:
    """The one poller of this process; async, so that it is made in the event loop it lives in."""
    state = request.app.state
    if not hasattr(state, "live_jobs"):
        state.live_jobs = LiveJobs(stores.engine)
    live: LiveJobs = state.live_jobs
    return live


Live = Annotated[LiveJobs, Depends(_live)]


def told(session: Session, job: Job, now: datetime) -> JobTold:
    """*job* as pages tell of it, with the names of its target and of what it made."""
    target = get_target(session, job.target_id).name if job.target_id else None
    assert job.id is not None
    plain = JobTold.of(job, target=target, bundle_id=bundle_of_job(session, job.id), now=now)
    if job.kind == KINDS[Diagnose]:
        return replace(plain, diagnostic_id=of_job(session, job.id).id)
    if job.kind == KINDS[IngestDump]:
        return replace(plain, dump_id=IngestDump(**job.arguments).dump_id)
    if job.kind == KINDS[ReplayRequests]:
        return replace(plain, replay_id=ReplayRequests(**job.arguments).replay_id)
    return plain


def _told_first(job_id: int, stores: AppStores, now: Now) -> JobTold:
    """The job before it is followed; the session ends before the stream begins."""
    with database.reading(stores.engine) as session:
        return told(session, get_job(session, job_id), now)


ToldFirst = Annotated[JobTold, Depends(_told_first)]


async def _seat(first: ToldFirst, live: Live) -> AsyncGenerator[Following | None]:
    """A place among the followers, None where there is none left; given up with the response."""
    if live.full:
        yield None
        return
    async with live.following(first.id) as following:
        yield following


Seat = Annotated[Following | None, Depends(_seat)]


@router.get("/jobs/{job_id}", name="job")
def job_page(
    request: Request, job_id: int, session: Reading, actor: Reader, shell: AppShell
) -> Response:
    job = told(session, get_job(session, job_id), shell.now)
    following: Literal["events", ""] = "events" if job.unfinished else ""
    return render(request, JobPage(shell, job, following, shell.may_act, names_tab=False))


@router.get("/jobs/{job_id}/progress", name="job_progress")
def job_progress(
    request: Request, job_id: int, session: Reading, actor: Reader, now: Now
) -> Response:
    """How far the job is, for pages that cannot follow its events; loads them anew at its end."""
    job = told(session, get_job(session, job_id), now)
    may_act = RANKS[actor.role] >= RANKS["operator"]
    answer = render(request, JobProgress(job, "tick", may_act, names_tab=True))
    if not job.unfinished:
        answer.headers["HX-Refresh"] = "true"
    return answer


@router.get("/jobs/{job_id}/events", name="job_events", response_class=EventSourceResponse)
async def job_events(
    request: Request, actor: Reader, first: ToldFirst, seat: Seat
) -> AsyncGenerator[ServerSentEvent]:
    """The progress as HTML at each change; beside it the events moved, ended and full."""
    if seat is None:
        yield ServerSentEvent(event="full", raw_data="")
        return
    may_act = RANKS[actor.role] >= RANKS["operator"]
    version: int | None = None
    async for job in seat.states():
        now = datetime.now(UTC)
        newest = JobTold.of(job, target=None, bundle_id=first.bundle_id, now=now)
        view = JobProgress(replace(newest, what=first.what), "events", may_act, names_tab=True)
        if not newest.unfinished:
            yield ServerSentEvent(event="ended", raw_data=newest.state)
            return
        yield ServerSentEvent(raw_data=bytes(render(request, view).body).decode())
        if job.version != version:
            yield ServerSentEvent(event="moved", raw_data=str(job.version))
        version = job.version


@router.post("/jobs/{job_id}/cancel", name="cancel_job")
def cancel_job(
    request: Request, job_id: int, session: Writing, actor: Operator, now: Now
) -> Response:
    request_cancel(session, get_job(session, job_id), actor, now)
    return done(request, to=request.url_for("job", job_id=job_id).path)


@router.post("/jobs/{job_id}/resume", name="resume_job")
def resume_job(
    request: Request,
    job_id: int,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
) -> Response:
    request_resume(session, stores.outbox, get_job(session, job_id), actor, now)
    return done(request, to=request.url_for("job", job_id=job_id).path)
