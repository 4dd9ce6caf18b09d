"""What happens regularly in every worker. Each beat may run in all of them at once.

Whatever a beat changes it changes by the row's present key or state, so that of two workers
that find the same thing only one does it.
"""

import logging
import time
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

from obstore.exceptions import BaseError
from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, and_, col, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from app.jobs.hosts import Hearings
from app.jobs.replay_journals import take_in_left
from app.store import attempts, evidence, jobs, uploads
from app.store.database import reading, writing
from app.store.outbox import OVER, Ticket
from app.store.stores import Stores
from app.store.tables import Idempotency, Job

TICK_SECONDS = 1.0
HEAR_SECONDS = 2.0  # each host less often, see ``hearing.EVERY``
HEARTBEAT_SECONDS = 10.0
SILENT_SECONDS = 30.0  # a worker that was not heard for so long is followed by another
IDEMPOTENCY_KEPT = timedelta(hours=24)
DONE_KEPT = timedelta(hours=24)  # by the engine; our job rows stay
ORPHANS_KEPT = timedelta(hours=24)  # bytes get their row at once; after a day there is none to come

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Beat:
    every_seconds: float
    action: Callable[[datetime], None]
    due: float = 0.0  # on the monotonic clock; the first time at once


class Beats:
    """A thread that keeps the queue honest and the house clean."""

    def __init__(self, stores: Stores, executor_id: str, in_hand: AbstractSet[str]) -> None:
        self._stores, self._executor_id, self._in_hand = stores, executor_id, in_hand
        self._hearings = Hearings(stores)
        self._settled = False
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="beats", daemon=True)
        self._beats = (
            _Beat(HEARTBEAT_SECONDS, self.heartbeat),
            _Beat(HEARTBEAT_SECONDS, self.take_over),
            _Beat(SILENT_SECONDS, self.mend),
            _Beat(TICK_SECONDS, self.enqueue_waiting),
            _Beat(HEAR_SECONDS, self._hearings.begin),
            _Beat(TICK_SECONDS, self.take_in_journals),
            _Beat(3600.0, self.expire),
            _Beat(24 * 3600.0, self.sweep),
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._hearings.end()

    def heartbeat(self, now: datetime) -> None:
        """Say that this worker is alive."""
        with writing(self._stores.engine) as session:
            attempts.heard(session, self._executor_id, at=now)

    def take_over(self, now: datetime) -> None:
        """Put back what dead workers hold, so that any worker may go on with it."""
        with writing(self._stores.engine) as session:
            silent_since = now - timedelta(seconds=SILENT_SECONDS)
            void = attempts.take_over(session, silent_since=silent_since, at=now)
        if void:
            self._stores.outbox.drop(void)

    def enqueue_waiting(self, now: datetime) -> None:
        """Enqueue rows that never made it to the engine, and those whose time has come."""
        with reading(self._stores.engine) as session:
            due = or_(col(Job.due_at).is_(None), col(Job.due_at) <= now)
            query = select(Job).where(Job.state == "queued", col(Job.enqueued_at).is_(None), due)
            tickets = [Ticket.of(job) for job in session.exec(query)]
        if tickets:
            self._stores.outbox.enqueue(tickets)

    def mend(self, now: datetime) -> None:
        """Queue again what the engine lost, as when its database was deleted.

        At the first time, just after a start, work that was cut off may still be taken up by
        the engine itself; later, what runs here and is in nobody's hand is lost.
        """
        with reading(self._stores.engine) as session:
            suspects = {job.key: job for job in session.exec(self._expected_in_engine())}
        known = self._stores.outbox.statuses(list(suspects)) if suspects else {}
        lost = [
            key
            for key, job in suspects.items()
            if key not in self._in_hand
            and (known.get(key, "SUCCESS") in OVER or (self._settled and job.state == "running"))
        ]
        self._settled = True
        if lost:
            self._stores.outbox.drop(lost)
            with writing(self._stores.engine) as session:
                _requeue(session, lost, at=now)

    def take_in_journals(self, _: datetime) -> None:
        """Store what replays measured that were cut off on this machine."""
        take_in_left(self._stores)

    def expire(self, now: datetime) -> None:
        """Forget answers that were kept for a repeated request, and uploads that were given up."""
        with writing(self._stores.engine) as session:
            old = col(Idempotency.created_at) < now - IDEMPOTENCY_KEPT
            session.execute(delete(Idempotency).where(old))
        uploads.sweep(self._stores, at=now)

    def sweep(self, now: datetime) -> None:
        """Remove bytes that a crash left without a row, and what the engine did long ago."""
        self._stores.outbox.forget(now - DONE_KEPT)
        evidence.sweep(self._stores, untouched=ORPHANS_KEPT, at=now)

    def _expected_in_engine(self) -> SelectOfScalar[Job]:
        queued = and_(col(Job.state) == "queued", col(Job.enqueued_at).is_not(None))
        mine = and_(col(Job.state) == "running", col(Job.worker) == self._executor_id)
        return select(Job).where(or_(queued, mine))

    def _run(self) -> None:
        while not self._stopping.wait(TICK_SECONDS):
            for beat in self._beats:
                if time.monotonic() >= beat.due and not self._stopping.is_set():
                    beat.due = time.monotonic() + beat.every_seconds
                    self._do(beat)

    def _do(self, beat: _Beat) -> None:
        try:
            beat.action(datetime.now(UTC))
        except (SQLAlchemyError, OSError, BaseError) as error:
            log.warning("%s will be tried again: %s", beat.action.__name__, error)


def _requeue(session: Session, keys: Iterable[str], *, at: datetime) -> None:
    query = select(Job).where(col(Job.key).in_(keys), col(Job.state).in_(jobs.UNFINISHED))
    for job in session.exec(query.with_for_update()):
        attempts.put_back(session, job, at=at)
