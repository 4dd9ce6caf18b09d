"""Live progress: one poller in each process asks the database for all jobs that are watched.

A follower holds no session and no thread; it sleeps until the poller saw a newer version of
its job. While nobody watches, nothing is asked.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col, select
from starlette.concurrency import run_in_threadpool

from app.errors import Throttled
from app.store import database
from app.store.jobs import UNFINISHED
from app.store.tables import Job

POLL_SECONDS = 0.3
HEARTBEAT_SECONDS = 2.0  # the elapsed time moves on, although the row does not
MOST_FOLLOWERS = 200  # of one process; the rest of the pages ask every 3 s instead
MOST_SECONDS = 600.0  # then the browser comes back, and its right to look is checked again


class LiveJobs:
    """The newest state of the jobs that somebody watches. Lives in one event loop."""

    def __init__(self, engine: Engine, *, most_followers: int = MOST_FOLLOWERS) -> None:
        self._engine = engine
        self._most = most_followers
        self._watched: Counter[int] = Counter()
        self._newest: dict[int, Job] = {}
        self._moved = asyncio.Condition()
        self._poller: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether one more follower would be one too many."""
        return self._watched.total() >= self._most

    @asynccontextmanager
    async def following(self, job_id: int) -> AsyncGenerator["Following"]:
        """A place among the followers of a job for as long as the block lasts.

        Raises Throttled when there is none left.
        """
        if self.full:
            raise Throttled(
                f"{self._most} pages follow jobs live already; there is no place for another.",
                retry_after_seconds=10,
                fix="Ask for the job itself every few seconds.",
            )
        self._watched[job_id] += 1
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            yield Following(self, job_id)
        finally:
            await self._leave(job_id)

    async def newest(self, job_id: int, *, than: int | None) -> Job | None:
        """The job when it is newer than version *than*, or as it is after the heartbeat.

        None when the database could not be asked.
        """
        async with self._moved:
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._moved.wait_for(lambda: self._is_newer(job_id, than)), HEARTBEAT_SECONDS
                )
        return None if self._silent else self._newest.get(job_id)

    @property
    def _silent(self) -> bool:
        return self._poller is None or self._poller.done()

    def _is_newer(self, job_id: int, than: int | None) -> bool:
        job = self._newest.get(job_id)
        return self._silent or (job is not None and job.version != than)

    async def _leave(self, job_id: int) -> None:
        self._watched -= Counter([job_id])  # drops the key at zero
        if job_id not in self._watched:
            self._newest.pop(job_id, None)
        if not self._watched and self._poller:
            poller, self._poller = self._poller, None
            poller.cancel()
            with suppress(asyncio.CancelledError):
                await poller

    async def _poll(self) -> None:
        try:
            while True:
                fresh = await run_in_threadpool(self._read, tuple(self._watched))
                self._newest = {one: job for one, job in fresh.items() if one in self._watched}
                async with self._moved:
                    self._moved.notify_all()
                await asyncio.sleep(POLL_SECONDS)
        except SQLAlchemyError:
            # Every stream ends, and each browser comes back by itself, later and later.
            self._poller = None
            async with self._moved:
                self._moved.notify_all()

    def _read(self, job_ids: tuple[int, ...]) -> dict[int, Job]:
        with database.reading(self._engine) as session:
            jobs = session.exec(select(Job).where(col(Job.id).in_(job_ids)))
            return {job.id: job for job in jobs if job.id is not None}


class Following:
    """One follower of one job."""

    def __init__(self, live: LiveJobs, job_id: int) -> None:
        self._live, self._job_id = live, job_id

    async def states(self) -> AsyncGenerator[Job]:
        """The job at once, then at each change and at each heartbeat, until it has ended."""
        seen: int | None = None
        deadline = asyncio.get_running_loop().time() + MOST_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            job = await self._live.newest(self._job_id, than=seen)
            if job is None:
                return
            yield job
            if job.state not in UNFINISHED:
                return
            seen = job.version
