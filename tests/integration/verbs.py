"""Kinds of jobs that only tests have, given to the engine the way the real ones are."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from app.errors import Rejected
from app.jobs.work import Verb, Work
from app.store import attempts, jobs
from app.store.database import reading, writing
from app.store.tables import Job


def count(work: Work) -> bool:
    """Count to ``slices``, one a slice, each of ``seconds``; tell each in the file "trace".

    At ``waits_at`` it waits until the test lets it go on.
    """
    wanted, seconds = work.job.arguments["slices"], work.job.arguments.get("seconds", 0.0)
    with reading(work.stores.engine) as session:
        done = session.get_one(Job, work.job.id).done
    if done == wanted:
        _succeed(work)
        return False
    asyncio.run(work.unless_stopped(asyncio.sleep(seconds)))
    if done == work.job.arguments.get("waits_at"):
        asyncio.run(work.unless_stopped(_let_go_on(work)))
    _trace(work, f"{work.job.id} {done + 1}")
    work.tell(f"{done + 1} of {wanted}.", done=done + 1, total=wanted)
    return True


def hang(work: Work) -> bool:
    """Wait for ever, as for an endpoint that never answers."""
    _trace(work, f"{work.job.id} hangs")
    asyncio.run(work.unless_stopped(asyncio.sleep(3600)))
    return False


def refuse(work: Work) -> bool:
    """Fail for a reason that can be told."""
    raise Rejected("The target said no.", fix="Ask its owner.")


def fall_over(work: Work) -> bool:
    """Fail by a mistake in the code."""
    raise ZeroDivisionError


def act(work: Work) -> bool:
    """Do something that must not be done twice without consent."""
    work.about_to_act()
    _trace(work, f"{work.job.id} acted")
    time.sleep(work.job.arguments.get("seconds", 0.0))
    _succeed(work)
    return False


VERBS: Mapping[str, Verb] = {
    "count": count,
    "hang": hang,
    "refuse": refuse,
    "fall over": fall_over,
    "act": act,
}


def _succeed(work: Work) -> None:
    with writing(work.stores.engine) as session:
        job = attempts.held(session, work.attempt)
        jobs.succeeded(session, job, "Done.", at=datetime.now(UTC))


def let_go_on(data_dir: Path, job_id: int) -> None:
    """A job that waits in a worker of this folder goes on, now or once it comes there."""
    (data_dir / f"go-{job_id}").touch()


async def _let_go_on(work: Work) -> None:
    let = work.stores.settings.data_dir / f"go-{work.job.id}"
    while not let.exists():  # noqa: ASYNC110  (it comes from another process)
        await asyncio.sleep(0.01)


def _trace(work: Work, line: str) -> None:
    with (work.stores.settings.data_dir / "trace").open("a") as trace:
        trace.write(line + "\n")
