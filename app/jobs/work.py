"""What a verb is given to work with, and what may stop it between two breaths."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import Any

from app.store import attempts
from app.store.attempts import Attempt
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Job

LOOK_SECONDS = 0.3  # between two looks whether to stop; a cancel is honoured within one second


class Stopping(Exception):
    """This process is shutting down; the job goes back to the queue."""


class NotHere(Stopping):
    """Another worker has to do this: what it needs is out of reach from here."""


@dataclass(frozen=True)
class Work:
    """One job in the hands of this worker."""

    stores: Stores
    job: Job  # as it was when the worker took it
    attempt: Attempt
    stopping: Event

    def tell(self, says: str, *, done: int | None = None, total: int | None = None) -> None:
        """Write what the job is doing, for the live page."""
        figures = {"done": done, "total": total}
        given = {name: value for name, value in figures.items() if value is not None}
        with writing(self.stores.engine) as session:
            attempts.progress(session, self.attempt, says, **given)

    def check(self) -> None:
        """Raise Cancelled, Superseded or Stopping where the work should not go on."""
        if self.stopping.is_set():
            raise Stopping
        with reading(self.stores.engine) as session:
            attempts.asked_to_stop(session, self.attempt)

    def about_to_act(self) -> None:
        """To be called by an intrusive verb before it acts; after a crash it asks again then."""
        with writing(self.stores.engine) as session:
            attempts.acts(session, self.attempt, at=datetime.now(UTC))

    def done_acting(self) -> None:
        """To be called when what is left harms nothing: after a crash it just goes on."""
        with writing(self.stores.engine) as session:
            attempts.acts(session, self.attempt, at=None)

    async def unless_stopped(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run *coroutine* and break it off as soon as ``check`` raises."""
        task = asyncio.create_task(coroutine)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_SECONDS)
                await asyncio.to_thread(self.check)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


# One slice of a job, about a second of work that may be done twice without harm; whether
# there is more to do. The last slice ends the job in its own transaction.
Verb = Callable[[Work], bool]
