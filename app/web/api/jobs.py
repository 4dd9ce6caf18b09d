"""API: jobs: reading, following, cancelling and resuming them."""

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict

from app.store import database
from app.store.incidents import get_incident
from app.store.jobs import get_job, jobs_of, request_cancel, request_resume
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute
from app.web.jobs import Live
from app.web.live import Following

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=IdempotentRoute)


class JobOut(BaseModel):
    """A step: queued, running or ended. ``total`` null: how much there is to do is not known."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    kind: str
    incident_id: int | None
    target_id: int | None
    state: str
    done: int
    total: int | None
    says: str
    reason: str | None
    result: dict[str, Any] | None
    requested_by: str
    attempts: int
    created_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    version: int


class JobsOut(BaseModel):
    """The jobs of one incident, newest first."""

    items: list[JobOut]
    next_cursor: None = None


def _known(job_id: int, stores: AppStores) -> int:
    """The number of a job that exists; the session ends before the stream begins."""
    with database.reading(stores.engine) as session:
        get_job(session, job_id)
    return job_id


async def _seat(job_id: Annotated[int, Depends(_known)], live: Live) -> AsyncGenerator[Following]:
    async with live.following(job_id) as following:
        yield following


@router.get("/incidents/{incident_id}/jobs")
def list_jobs(incident_id: int, session: Reading, actor: Reader) -> JobsOut:
    get_incident(session, incident_id)
    jobs = jobs_of(session, incident_id)
    return JobsOut(items=[JobOut.model_validate(job) for job in jobs])


@router.get("/jobs/{job_id}")
def read_job(job_id: int, session: Reading, actor: Reader) -> JobOut:
    return JobOut.model_validate(get_job(session, job_id))


@router.get("/jobs/{job_id}/events", response_class=EventSourceResponse)
async def follow_job(
    actor: Reader, seat: Annotated[Following, Depends(_seat)]
) -> AsyncGenerator[ServerSentEvent]:
    """The job as JSON (event ``job``) at each change and every 2 s, until it has ended.

    A stream that ends before the job did is to be asked for again.
    """
    async for job in seat.states():
        told = JobOut.model_validate(job)
        yield ServerSentEvent(data=told, event="job", id=str(told.version))


@router.post("/jobs/{job_id}/cancel", status_code=202)
def cancel_job(job_id: int, session: Writing, actor: Operator, now: Now) -> JobOut:
    """Ask the job to stop at its next answer; what was done stays readable."""
    job = get_job(session, job_id)
    request_cancel(session, job, actor, now)
    return JobOut.model_validate(job)


@router.post("/jobs/{job_id}/resume", status_code=202)
def resume_job(
    job_id: int, session: Writing, stores: AppStores, actor: Operator, now: Now
) -> JobOut:
    """Ask for the rest of a job that failed, was cancelled or interrupted."""
    job = get_job(session, job_id)
    request_resume(session, stores.outbox, job, actor, now)
    return JobOut.model_validate(job)
