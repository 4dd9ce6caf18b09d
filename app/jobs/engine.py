"""The durable engine: one workflow, which does a job slice by slice.

DBOS remembers which slices are done and goes on by itself after a crash; our job row decides
whether there is anything to go on with. The engine is told nothing but a job's number and key.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from threading import Event
from typing import Self

from dbos import DBOS, DBOSConfig

from app.errors import ConsoleError, Rejected
from app.jobs.beats import Beats
from app.jobs.collect import collect
from app.jobs.diagnose import diagnose
from app.jobs.identity import Identity
from app.jobs.ingest import ingest
from app.jobs.record import record
from app.jobs.replay import replay
from app.jobs.work import Stopping, Verb, Work
from app.store import attempts, jobs
from app.store.attempts import Attempt, Cancelled, Superseded
from app.store.database import writing
from app.store.outbox import APPLICATION, QUEUE, REPLAY_QUEUE, SERIALIZER, WORKFLOW
from app.store.stores import Stores
from app.store.tables import Job

VERSION = "1"  # of the order of the engine's steps; work of another version is not taken up
POLL_SECONDS = 0.2  # how long a job may wait in the engine's queue
VERBS: Mapping[str, Verb] = {
    "collect": collect,
    "diagnose": diagnose,
    "ingest": ingest,
    "record": record,
    "replay": replay,
}

log = logging.getLogger(__name__)


class Engine:
    """Takes jobs from the queue and does them; one in each process that works."""

    def __init__(self, stores: Stores, verbs: Mapping[str, Verb]) -> None:
        self._stores, self._verbs = stores, verbs
        settings = stores.settings
        self._places = {
            QUEUE: settings.collect_concurrency,
            REPLAY_QUEUE: settings.replay_concurrency,
        }
        self._stopping = Event()
        self._in_hand: set[str] = set()  # keys of attempts
        self._identity = Identity.take(stores.settings)
        self._beats = Beats(stores, self._identity.executor_id, self._in_hand)

    @classmethod
    def start(cls, stores: Stores, verbs: Mapping[str, Verb] = VERBS) -> Self:
        """Begin to work; what a crash cut off goes on within a second."""
        engine = cls(stores, verbs)
        DBOS(config=engine._config())
        DBOS.workflow(name=WORKFLOW)(_workflow(engine))
        DBOS.launch()
        for queue, at_once in engine._places.items():
            DBOS.register_queue(
                queue,
                partition_concurrency=1,
                worker_concurrency=at_once,
                polling_interval_sec=POLL_SECONDS,
                on_conflict="always_update",
            )
        engine._beats.start()
        return engine

    def stop(self) -> None:
        """Put back what is in hand and stop; another worker, or the next start, goes on."""
        self._stopping.set()
        self._beats.stop()
        DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=5)
        self._identity.release()

    @property
    def executor_id(self) -> str:
        """The name of this worker, the same after a restart."""
        return self._identity.executor_id

    def perform(self, job_id: int, key: str) -> None:
        """Do a job until nothing is left of it, unless it is over or another's."""
        self._in_hand.add(key)
        try:
            self._perform(Attempt(job_id, key))
        finally:
            self._in_hand.discard(key)

    def _perform(self, attempt: Attempt) -> None:
        job = self._claim(attempt)
        if job is None:
            return
        work = Work(self._stores, job, attempt, self._stopping)
        verb = self._verbs.get(job.kind, _unknown)
        while DBOS.run_step({"name": "slice"}, lambda: self._slice(verb, work)):
            pass

    def _claim(self, attempt: Attempt) -> Job | None:
        with writing(self._stores.engine) as session:
            return attempts.claim(
                session,
                attempt,
                worker=self.executor_id,
                places=self._places,
                at=datetime.now(UTC),
            )

    def _slice(self, verb: Verb, work: Work) -> bool:
        """Whether there is more to do. However a slice ends, the job row says so."""
        try:
            work.check()
            return verb(work)
        except Superseded:
            return False
        except Cancelled:
            self._end(work.attempt, jobs.cancelled)
        except Stopping:
            self._end(work.attempt, attempts.put_back)
        except ConsoleError as error:
            self._fail(work.attempt, error.detail)
        except Exception as error:
            # The last resort for a mistake of ours: the job must not look as if it ran on.
            log.exception("Job %s broke.", work.attempt.job_id)
            self._fail(work.attempt, f"The console itself failed: {type(error).__name__}.")
        return False

    def _fail(self, attempt: Attempt, reason: str) -> None:
        self._end(attempt, partial(jobs.failed, reason=reason))

    def _end(self, attempt: Attempt, ending: Callable[..., None]) -> None:
        with suppress(Superseded), writing(self._stores.engine) as session:
            ending(session, attempts.held(session, attempt), at=datetime.now(UTC))

    def _config(self) -> DBOSConfig:
        return {
            "name": APPLICATION,
            "system_database_engine": self._stores.outbox.jobs_engine,
            "serializer": SERIALIZER,
            "application_version": VERSION,
            "executor_id": self.executor_id,
            "log_level": "WARNING",
            "use_listen_notify": False,  # nobody waits for events of the engine; rows tell
            "notification_listener_polling_interval_sec": POLL_SECONDS,  # so that it stops soon
            "enable_otlp": False,
        }


def _unknown(work: Work) -> bool:
    raise Rejected(f"This version of the console does not know the step {work.job.kind}.")


def _workflow(engine: Engine) -> Callable[[int, str], None]:
    def perform(job_id: int, key: str) -> None:
        engine.perform(job_id, key)

    return perform
