"""Jobs as people see them: looked at, cancelled, resumed."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, select

from app.domain.playbook import StepCancelled, StepFailed
from app.errors import Conflict, NotFound
from app.store import audit, timeline
from app.store.audit import CONSOLE, Actor
from app.store.outbox import Outbox, new_key, step_of
from app.store.tables import BundleRow, Diagnostic, Dump, Job, Replay, ReplayTrial

UNFINISHED = ("queued", "running")
RESUMABLE = ("failed", "cancelled", "interrupted")


def get_job(session: Session, job_id: int) -> Job:
    """The job of that number; raises NotFound."""
    job = session.get(Job, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def is_unfinished(session: Session, job_id: int | None) -> bool:
    """Whether a job waits or is at work; that stays so until the transaction is over."""
    query = select(Job.state).where(Job.id == job_id).with_for_update()
    return session.exec(query).first() in UNFINISHED


def jobs_of(session: Session, incident_id: int) -> Sequence[Job]:
    """The jobs of an incident, newest first."""
    query = select(Job).where(Job.incident_id == incident_id).order_by(col(Job.id).desc())
    return session.exec(query).all()


def request_cancel(session: Session, job: Job, actor: Actor, at: datetime) -> None:
    """Ask *job* to stop: at once while it waits, within a second while it works.

    What it has done stays readable. What it still owes to a target, as to switch off what it
    switched on, it does now instead. Raises Conflict when it is over.
    """
    session.refresh(job, with_for_update=True)
    if job.state not in UNFINISHED:
        raise Conflict(f"Job {job.id} is {job.state}; there is nothing left to cancel.")
    audit.note(session, actor, "job.cancel", f"job:{job.id}", at=at)
    if job.due_at is not None:
        sooner(job, at)
        return
    job.cancel_requested_at, job.cancel_requested_by = at, actor.name
    job.version += 1
    if job.state == "queued":
        cancelled(session, job, at=at)


def request_resume(session: Session, outbox: Outbox, job: Job, actor: Actor, at: datetime) -> None:
    """Let *job* go on where it stopped, as a new attempt.

    For an intrusive step this is the consent to act once more. Raises Conflict when the job
    is not over, or ended well.
    """
    session.refresh(job, with_for_update=True)
    if job.state not in RESUMABLE:
        raise Conflict(f"Job {job.id} is {job.state}; only a job that stopped can be resumed.")
    audit.note(session, actor, "job.resume", f"job:{job.id}", at=at)
    job.acted_at = job.finished_at = job.reason = None
    job.cancel_requested_at = job.cancel_requested_by = None
    _settle_bundle(session, job, "collecting")
    _settle_diagnostic(session, job, "queued")
    _settle_dump(session, job, "waiting")
    _settle_replay(session, job, "waiting")
    requeue(job)
    outbox.post(session, job)


def sooner(job: Job, at: datetime) -> None:
    """Have *job* do at once what it owes at a later time, as to switch off what it switched on."""
    if job.due_at is None or job.due_at > at:
        job.due_at = at
    job.version += 1


def later(job: Job, says: str, due_at: datetime | None = None) -> None:
    """Back to the queue until *due_at*; None: until the time that it was given before."""
    requeue(job)
    job.says, job.due_at = says, due_at or job.due_at


def requeue(job: Job) -> None:
    """Back to the queue under a fresh key; whoever still works under the old one is too late."""
    job.key = new_key()
    job.state, job.enqueued_at, job.worker = "queued", None, None
    job.acted_at = None  # an intrusive job that acted never comes here, see ``interrupted``
    job.says = "Waiting for a worker."
    job.version += 1


def cancelled(session: Session, job: Job, *, at: datetime) -> None:
    """End *job* as somebody asked."""
    by = job.cancel_requested_by or CONSOLE.name
    _end(session, job, "cancelled", f"Cancelled by {by}.", at=at)
    _tell(
        session,
        job,
        StepCancelled(step_of(job), _id(job), by),
        at=at,
    )


def failed(session: Session, job: Job, *, reason: str, at: datetime) -> None:
    """End *job* with the reason why it could not be done; what it owes later it still does then."""
    if job.due_at is not None and job.due_at > at:
        later(job, reason)
        return
    job.reason = reason
    _end(session, job, "failed", reason, at=at)
    _tell(
        session,
        job,
        StepFailed(step_of(job), _id(job), reason),
        at=at,
    )


def interrupted(session: Session, job: Job, *, at: datetime) -> None:
    """End an intrusive *job* that was cut off after it began to act."""
    job.reason = "Cut off after it began to act. It is not repeated unless somebody asks."
    _end(session, job, "interrupted", job.reason, at=at)
    _tell(
        session,
        job,
        StepFailed(step_of(job), _id(job), job.reason),
        at=at,
    )


def succeeded(session: Session, job: Job, says: str, *, at: datetime) -> None:
    """End *job* well."""
    _end(session, job, "succeeded", says, at=at)


def _end(session: Session, job: Job, state: str, says: str, *, at: datetime) -> None:
    job.state, job.says, job.finished_at = state, says, at
    job.version += 1
    if state in ("cancelled", "failed"):
        _settle_bundle(session, job, state)
        _settle_dump(session, job, state)
    _settle_diagnostic(session, job, state)
    _settle_replay(session, job, state)


def _settle_bundle(session: Session, job: Job, state: str) -> None:
    bundle = session.exec(select(BundleRow).where(BundleRow.job_id == job.id)).first()
    if bundle and bundle.state != "complete":
        bundle.state = state


def _settle_dump(session: Session, job: Job, state: str) -> None:
    """Of a dump that was not read to its end; one that was purged meanwhile stays so."""
    query = select(Dump).where(Dump.job_id == job.id)
    if job.kind != "ingest" or (dump := session.exec(query).first()) is None:
        return
    if dump.state in ("waiting", "reading", "failed", "cancelled"):
        dump.state, dump.says = state, job.says


def _settle_diagnostic(session: Session, job: Job, state: str) -> None:
    query = select(Diagnostic).where(Diagnostic.job_id == job.id)
    if job.kind == "diagnose" and (diagnostic := session.exec(query).first()):
        diagnostic.state = "done" if state == "succeeded" else state
        diagnostic.says, diagnostic.finished_at = job.says, job.finished_at


def _settle_replay(session: Session, job: Job, state: str) -> None:
    """One that has come to its own end keeps it; what was measured stays in any case."""
    query = select(Replay).where(Replay.job_id == job.id)
    if job.kind != "replay" or (replay := session.exec(query).first()) is None:
        return
    if state != "waiting" and replay.state in ("done", "planned", "refused"):
        return
    replay.state, replay.says, replay.finished_at = state, job.says, job.finished_at
    replay.version += 1
    running = select(ReplayTrial).where(
        ReplayTrial.replay_id == replay.id, ReplayTrial.state == "running"
    )
    for trial in session.exec(running):
        trial.state, trial.finished_at = "stopped", job.finished_at


def _tell(session: Session, job: Job, event: StepFailed | StepCancelled, *, at: datetime) -> None:
    if job.incident_id is not None:
        timeline.record(session, event, incident_id=job.incident_id, actor=CONSOLE, at=at)


def _id(job: Job) -> int:
    assert job.id is not None
    return job.id
