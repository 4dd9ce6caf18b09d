"""Outcomes on their way into the store: by a thread of its own, so that nothing waits for it.

The processes that send would stand still if nobody took what they say, and the store may be
locked for seconds. What could not be written is written with the next batch.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Recorded, Sending
from app.errors import NoSpace
from app.jobs.work import LOOK_SECONDS, Stopping, Work
from app.store import replay_progress
from app.store.attempts import Cancelled, Superseded
from app.store.replay_progress import Begun

BATCH = 2000
BREATH_SECONDS = 0.1  # between two batches
_UNKNOWN = Recorded()


class Abandoned(Stopping):
    """This process ends, and the store still takes nothing; the journal has what was measured."""


log = logging.getLogger(__name__)


@dataclass(slots=True)
class Landing:
    """Takes outcomes of one trial, and tells whether it is to stop.

    Where the store takes nothing for *patience_seconds*, as on a full disk, it is to stop. Left,
    everything that was taken is written, however long that takes; the worker's own end, or that
    of the job, ends the waiting.
    """

    work: Work
    begun: Begun
    patience_seconds: float = 60.0
    _recorded: dict[int, Recorded] = field(default_factory=dict)
    _queue: SimpleQueue[Sequence[Outcome] | None] = field(default_factory=SimpleQueue)
    _pending: list[tuple[Outcome, Recorded]] = field(default_factory=list)
    _why: Exception | None = None
    _looked_at: float = 0.0
    _written_at: float = field(default_factory=time.monotonic)
    _thread: Thread | None = None

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._run, name="outcomes", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.put(None)
        assert self._thread is not None
        self._thread.join()
        while self._pending and self.all_written:
            self._try_to_write()
            self._give_up()

    def seen(self, sendings: Iterable[Sending]) -> Iterator[Sending]:
        """*sendings*, of which is kept how they went when they were recorded."""
        for one in sendings:
            self._recorded[one.index] = one.recorded.without_answer()
            yield one

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Take outcomes in; returns at once."""
        self._queue.put(outcomes)

    def is_stopping(self) -> bool:
        """Whether nothing more is to be sent."""
        return self._why is not None

    @property
    def all_written(self) -> bool:
        """Once it is left: False where another attempt has taken over, or all had to be left."""
        return not isinstance(self._why, Superseded | Abandoned)

    def check(self) -> None:
        """Raise why it was stopped, if it was."""
        if self._why is not None:
            raise self._why

    def _run(self) -> None:
        while self._drain():
            if self._why is None:
                self._look()
            self._try_to_write()
            if self._why is None and self._is_stuck():
                self._why = NoSpace(
                    f"The database took no outcomes for {self.patience_seconds:g} s, so the rest"
                    " was not sent.",
                    why="What was measured is kept.",
                    fix="Look at the free space of the data folder and at the log of the console.",
                )

    def _drain(self) -> bool:
        """Wait for outcomes and take what is there; False once there will be none."""
        until = time.monotonic() + BREATH_SECONDS
        while (left := until - time.monotonic()) > 0:
            try:
                outcomes = self._queue.get(timeout=left)
            except Empty:
                break
            if outcomes is None:
                return False
            self._add(outcomes)
        return True

    def _add(self, outcomes: Sequence[Outcome]) -> None:
        known: Mapping[int, Recorded] = self._recorded
        for one in outcomes:
            self.begun.counts.see(one)
            self._pending.append((one, known.get(one.index, _UNKNOWN)))

    def _look(self) -> None:
        if time.monotonic() < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            self.work.check()
        except (Cancelled, Superseded, Stopping) as error:
            self._why = error
        except SQLAlchemyError as error:
            log.warning("Whether to stop is asked again: %s", error)

    def _is_stuck(self) -> bool:
        return bool(self._pending) and time.monotonic() - self._written_at > self.patience_seconds

    def _give_up(self) -> None:
        """After the sending: wait for a store that takes nothing, unless this process is to end."""
        if not self._pending:
            return
        if self.work.stopping.wait(LOOK_SECONDS):
            log.error("%d outcomes could not be written before the end.", len(self._pending))
            self._why = Abandoned()

    def _try_to_write(self) -> None:
        try:
            self._write()
        except Superseded as error:
            self._why = error
            self._pending.clear()
        except SQLAlchemyError as error:
            log.warning("Outcomes are written with the next batch: %s", error)
        else:
            self._written_at = time.monotonic()

    def _write(self) -> None:
        while self._pending:
            batch = self._pending[:BATCH]
            stores, attempt = self.work.stores, self.work.attempt
            replay_progress.land(stores, attempt, self.begun.trial, batch, self.begun.counts)
            del self._pending[: len(batch)]
