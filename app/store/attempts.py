"""A job in the hands of a worker. Every write is bound to the key of the attempt.

A worker that was thought dead and wakes up again finds that the key has changed and stops:
``Superseded``. So a step may be begun twice, but its row is written by one worker only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import CursorResult, update
from sqlmodel import Session, col, select

from app.store import jobs
from app.store.outbox import queue_of
from app.store.tables import Job, Worker


class Superseded(Exception):
    """Another worker has this job now, or it is over; nothing more may be written."""


class Cancelled(Exception):
    """Somebody asked the job to stop."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a job."""

    job_id: int
    key: str


def claim(
    session: Session, attempt: Attempt, *, worker: str, places: Mapping[str, int], at: datetime
) -> Job | None:
    """The job, now in the hands of *worker*; None when there is nothing to do for it.

    A job whose partition is busy, or for which this worker has no more of the *places* of its
    queue, goes back there: the engine's own limits do not hold for work that it recovers.
    """
    job = _locked(session, attempt)
    if job is None or job.state not in jobs.UNFINISHED:
        return None
    if job.intrusive and job.acted_at:
        jobs.interrupted(session, job, at=at)
    elif job.cancel_requested_at:
        jobs.cancelled(session, job, at=at)
    elif _crowded(session, job, worker, places):
        jobs.requeue(job)
    else:
        job.state, job.worker = "running", worker
        job.started_at = job.started_at or at
        job.enqueued_at = job.enqueued_at or at
        job.attempts += 1
        job.version += 1
        return job
    return None


def progress(session: Session, attempt: Attempt, says: str, **figures: int | None) -> None:
    """Write what the job is doing, and its *done* and *total* where given."""
    _write(session, attempt, says=says, **figures)


def acts(session: Session, attempt: Attempt, *, at: datetime | None) -> None:
    """Write that an intrusive step is about to act, committed before it does; None: it is done."""
    _write(session, attempt, acted_at=at)


def asked_to_stop(session: Session, attempt: Attempt) -> None:
    """Raise Cancelled or Superseded where the attempt should not go on."""
    query = select(Job.cancel_requested_at, Job.state).where(
        Job.id == attempt.job_id, Job.key == attempt.key
    )
    row = session.exec(query).first()
    if row is None or row[1] != "running":
        raise Superseded
    if row[0] is not None:
        raise Cancelled


def held(session: Session, attempt: Attempt) -> Job:
    """The job, locked for the transaction that ends it; raises Superseded."""
    job = _locked(session, attempt)
    if job is None or job.state != "running":
        raise Superseded
    return job


def put_back(session: Session, job: Job, *, at: datetime) -> None:
    """Return a job that its worker cannot finish; an intrusive one that acted asks again."""
    if job.intrusive and job.acted_at:
        jobs.interrupted(session, job, at=at)
    else:
        jobs.requeue(job)


def heard(session: Session, executor_id: str, *, at: datetime) -> None:
    """Note that a worker is alive."""
    worker = session.get(Worker, executor_id)
    if worker is None:
        session.add(Worker(executor_id=executor_id, started_at=at, heard_at=at))
    else:
        worker.heard_at = at


def is_silent(session: Session, executor_id: str, *, seconds: float = 30.0) -> bool:
    """Whether a worker was not heard in the last *seconds*; so also one that nobody knows."""
    worker = session.get(Worker, executor_id)
    return worker is None or worker.heard_at < datetime.now(UTC) - timedelta(seconds=seconds)


def take_over(session: Session, *, silent_since: datetime, at: datetime) -> list[str]:
    """Put back what workers hold that were not heard since; the keys that are void now."""
    alive = select(Worker.executor_id).where(Worker.heard_at >= silent_since)
    query = select(Job).where(Job.state == "running", col(Job.worker).not_in(alive))
    void = []
    for job in session.exec(query.with_for_update(skip_locked=True)):
        void.append(job.key)
        put_back(session, job, at=at)
    return void


def _locked(session: Session, attempt: Attempt) -> Job | None:
    query = select(Job).where(Job.id == attempt.job_id, Job.key == attempt.key)
    return session.exec(query.with_for_update()).first()


def _crowded(session: Session, job: Job, worker: str, places: Mapping[str, int]) -> bool:
    # Both of two jobs that start in one moment lock both rows, one after the other.
    neighbours = (
        select(Job)
        .where(Job.partition == job.partition, col(Job.state).in_(jobs.UNFINISHED))
        .order_by(col(Job.id))
        .with_for_update()
    )
    running = [one for one in session.exec(neighbours) if one.state == "running"]
    if any(one.id != job.id for one in running):
        return True
    mine = select(Job.kind).where(
        Job.state == "running", Job.worker == worker, col(Job.id) != job.id
    )
    queue = queue_of(job.kind)
    return sum(queue_of(kind) == queue for kind in session.exec(mine)) >= places[queue]


def _write(session: Session, attempt: Attempt, **values: Any) -> None:  # noqa: ANN401
    result = session.execute(
        update(Job)
        .where(
            col(Job.id) == attempt.job_id, col(Job.key) == attempt.key, col(Job.state) == "running"
        )
        .values(version=Job.version + 1, **values)
    )
    assert isinstance(result, CursorResult)
    if result.rowcount != 1:
        raise Superseded
