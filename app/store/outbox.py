"""From a job row to the durable engine: rows are written with their cause, enqueued after commit.

The job row is the truth. The engine only learns that there is work (job id and key), and its
database may be deleted at any time: ``jobs.beats`` enqueues again what never made it.
"""

import logging
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from dbos import DBOSClient, DBOSPortableJSONSerializer, EnqueueOptions
from sqlalchemy import Engine, create_engine, event, update
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlmodel import Session, col

from app.domain import playbook
from app.store import audit, timeline
from app.store.audit import Actor
from app.store.database import BUSY_TIMEOUT_SECONDS, open_postgres, writing
from app.store.tables import Job, Target

APPLICATION = "incident-console"
# Replays take minutes to hours: in the queue of all others they would keep bundles waiting.
QUEUE, REPLAY_QUEUE = "steps", "replays"
WORKFLOW = "perform"
SERIALIZER = DBOSPortableJSONSerializer()

# What the engine may say of a workflow that will never run again by itself.
OVER = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})

_REPLAY = playbook.KINDS[playbook.ReplayRequests]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ticket:
    """All that the engine is told of a job."""

    job_id: int
    key: str
    partition: str
    queue: str

    @classmethod
    def of(cls, job: Job) -> Self:
        """For a job that is in the database."""
        assert job.id is not None
        return cls(job.id, job.key, job.partition, queue_of(job.kind))


def open_jobs_database(url: str) -> Engine:
    """The durable engine's own database; disposable, so it need not survive power loss."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return open_postgres(parsed, pool_size=10)
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, pool_size=20, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = "IMMEDIATE"  # as the engine itself asks of SQLite
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_SECONDS * 1000}",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


class Outbox:
    """Hands committed job rows to the durable engine."""

    def __init__(self, engine: Engine, jobs_database: str) -> None:
        self._engine = engine
        self.jobs_engine = open_jobs_database(jobs_database)
        self._client = DBOSClient(
            system_database_engine=self.jobs_engine,
            serializer=SERIALIZER,
            application_name=APPLICATION,
            lazy=True,
            retry_connection_errors=False,
        )

    def post(self, session: Session, job: Job) -> None:
        """Enqueue *job* once the session's transaction has been committed, never before."""
        session.flush()
        ticket = Ticket.of(job)
        event.listen(session, "after_commit", lambda _: self.enqueue([ticket]), once=True)

    def enqueue(self, tickets: Iterable[Ticket]) -> None:
        """Tell the engine of these jobs; telling it twice changes nothing.

        Never raises: a row that does not make it now is taken by the next beat.
        """
        try:
            made_it = [self._enqueue(ticket) for ticket in tickets]
            with writing(self._engine) as session:
                session.execute(
                    update(Job)
                    .where(col(Job.key).in_(made_it), col(Job.enqueued_at).is_(None))
                    .values(enqueued_at=datetime.now(UTC))
                )
        except SQLAlchemyError as error:
            log.warning("A job waits for the next beat: %s", error)

    def statuses(self, keys: list[str]) -> dict[str, str]:
        """What the engine knows of these keys; an unknown key is absent."""
        known = self._client.list_workflows(workflow_ids=keys, load_input=False, load_output=False)
        return {workflow.workflow_id: workflow.status for workflow in known}

    def drop(self, keys: list[str]) -> None:
        """Make the engine forget attempts that were superseded, so that they block no partition."""
        self._client.cancel_workflows(keys)

    def forget(self, before: datetime) -> None:
        """Delete the engine's record of what it finished earlier, so that its database stays small.

        Our job rows stay.
        """
        over = self._client.list_workflows(
            status=list(OVER),
            completed_before=before.isoformat(),
            load_input=False,
            load_output=False,
        )
        self._client.delete_workflows([workflow.workflow_id for workflow in over])

    def close(self) -> None:
        self._client.destroy()
        self.jobs_engine.dispose()

    def _enqueue(self, ticket: Ticket) -> str:
        options: EnqueueOptions = {
            "queue_name": ticket.queue,
            "workflow_name": WORKFLOW,
            "workflow_id": ticket.key,
            "queue_partition_key": ticket.partition,
        }
        self._client.enqueue(options, ticket.job_id, ticket.key)
        return ticket.key


def queue_of(kind: str) -> str:
    """The queue that jobs of a kind wait in; each has places of its own in every worker."""
    return REPLAY_QUEUE if kind == _REPLAY else QUEUE


def new_key() -> str:
    """A name for one attempt at a job; the durable engine runs each name once."""
    return secrets.token_hex(16)


def queue_job(  # noqa: PLR0913  (a job has these parts)
    session: Session,
    outbox: Outbox,
    kind: str,
    *,
    partition: str,
    actor: Actor,
    at: datetime,
    arguments: dict[str, Any] | None = None,
    incident_id: int | None = None,
    target_id: int | None = None,
    intrusive: bool = False,
) -> Job:
    """Write a job into the caller's transaction; it is enqueued when that commits."""
    job = Job(
        key=new_key(),
        kind=kind,
        incident_id=incident_id,
        target_id=target_id,
        partition=partition,
        arguments=arguments or {},
        intrusive=intrusive,
        requested_by=actor.name,
        created_at=at,
        says="Waiting for a worker.",
    )
    session.add(job)
    outbox.post(session, job)
    return job


def request(  # noqa: PLR0913
    session: Session,
    outbox: Outbox,
    step: playbook.Step,
    *,
    incident_id: int | None,
    target_id: int | None,
    actor: Actor,
    at: datetime,
) -> Job:
    """Ask for *step*: its job, its line in the timeline and in the audit log."""
    job = queue_job(
        session,
        outbox,
        playbook.KINDS[type(step)],
        partition=_partition(step, target_id, incident_id),
        actor=actor,
        at=at,
        arguments=asdict(step),
        incident_id=incident_id,
        target_id=target_id,
        intrusive=playbook.is_intrusive(step),
    )
    assert job.id is not None
    audit.note(session, actor, f"job.{job.kind}", f"job:{job.id}", at=at, **job.arguments)
    if incident_id is not None:
        target = session.get(Target, target_id) if target_id else None
        name = target.name if target else None
        asked = playbook.StepRequested(step_of(job), job.id, name)
        timeline.record(session, asked, incident_id=incident_id, actor=actor, at=at)
    return job


def step_of(job: Job) -> str:
    """The step that *job* does, as events name it."""
    return playbook.step_name(job.kind, job.arguments.get("kind"))


def _partition(step: playbook.Step, target_id: int | None, incident_id: int | None) -> str:
    """Diagnostics wait for no bundle in the queue: a press takes its stacks now, see ``turns``."""
    if isinstance(step, playbook.Diagnose):
        return f"diagnose:{secrets.token_hex(4)}"
    if isinstance(step, playbook.IngestDump):
        return f"ingest:{incident_id}"  # reading takes memory, and holds up no bundle
    if isinstance(step, playbook.RecordRequests):
        return f"record:{target_id}"
    if isinstance(step, playbook.ReplayRequests):
        return f"replay:{target_id}"
    return f"target:{target_id}" if target_id else f"incident:{incident_id}"
