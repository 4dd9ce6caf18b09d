"""One py-spy on one process: the mode that its state allows, and what came of it.

Never with --locals, which prints keys and prompts. A process that is stopped, asleep in the
kernel, frozen or traced is read without a pause: there a blocking py-spy fails at once or hangs,
and nothing moves that could be torn. What was tried and refused on the way is told.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Literal

from app.agent.processes.proc import PROC
from app.agent.stacks.pyspy_calls import CANCELLED, Attempts, Try, first_mode
from app.agent.stacks.stillness import ENDED, Stance, after_a_tool, newly_stopped, stance
from app.agent.touching.tools import find_tool
from app.domain.pyspy_errors import GONE, MISSING, PySpyError
from app.protocol.messages import Mode, Process, Refusal

ENDED_SINCE = "It has ended, perhaps while it was read: calls may be missing."

REPLACED = PySpyError(
    "process_gone_or_zombie",
    "The process has ended: its number belongs to another one now.",
    "Ask for the processes again; the server may have been restarted.",
)
ZOMBIE = PySpyError(
    "process_gone_or_zombie",
    "It is a zombie: it has ended, and its parent has not noticed.",
    GONE.fix,
    GONE.command,
)
HALF_SEEN = PySpyError(
    "not_python_or_unsupported",
    "The process runs, but py-spy misses a file of it: its program was replaced or removed.",
    "Take the native stacks with gdb.",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What py-spy read of one process. *exact* False: taken in motion, may be torn."""

    json: bytes
    threads: int
    mode: Mode
    exact: bool
    taken_at: datetime
    seconds: float
    state_before: str
    state_after: str | None  # None: it has ended since
    notes: tuple[str, ...]


def read(
    process: Process,
    wanted: Literal["plain", "native"],
    *,
    cancel: Event | None = None,
    root: Path = PROC,
) -> Reading | Refusal:
    """The stacks of *process* as they stand now, or the reason why there are none.

    Takes at most ten seconds for each mode that is tried, twenty for a native one. The start
    time is compared before and after, and whether the process was left as it was found.
    """
    before = stance(process.pid, root)
    if before is None or before.stat.start_ticks != _start_ticks(process):
        return refusal(process, GONE if before is None else REPLACED)
    if before.stat.state in ENDED:
        return refusal(process, ZOMBIE)
    if (pyspy := find_tool("py-spy")) is None:
        return refusal(process, MISSING)
    attempts = Attempts(process, pyspy, cancel, root)
    mode, why = first_mode(process, wanted, before)
    last = attempts.until_one_works(mode)
    after = after_a_tool(process.pid, before, root)
    if after is not None and after.stat.start_ticks != before.stat.start_ticks:
        return refusal(process, REPLACED)
    if last.error is not None:
        return _refused(process, last.error, before, after)
    return _reading(last, before, after, (*why, *attempts.notes))


def refusal(process: Process, error: PySpyError) -> Refusal:
    """*error* as the answer for *process*."""
    return Refusal(
        process_id=process.id,
        rank=process.rank.label if process.rank else None,
        kind=error.kind,
        reason=error.reason,
        fix=error.fix,
        command=error.command,
    )


def _start_ticks(process: Process) -> int:
    return int(process.id.partition(".")[2])


def _refused(process: Process, error: PySpyError, before: Stance, after: Stance | None) -> Refusal:
    still_there = after is not None and after.stat.state not in ENDED
    if not still_there and error is not CANCELLED:
        error = GONE
    elif error is GONE:  # "no such file" about something else than the process
        error = HALF_SEEN
    if after is not None and newly_stopped(before, after):
        error = replace(error, reason=f"{_stopped_now(after)} {error.reason}")
        error = replace(error, command=f"kill -CONT {process.pid}")
    return refusal(process, error)


def _reading(tried: Try, before: Stance, after: Stance | None, notes: tuple[str, ...]) -> Reading:
    ended = after is None or after.stat.state in ENDED
    still = before.unmoved and after is not None and after.unmoved
    if after is None or ended:
        notes = (ENDED_SINCE, *notes)
    elif newly_stopped(before, after):
        notes = (_stopped_now(after), *notes)
    return Reading(
        json=tried.run.out,
        threads=tried.threads,
        mode=tried.mode,
        exact=not ended and (tried.mode != "nonblocking" or still),
        taken_at=tried.began_at,
        seconds=tried.run.seconds,
        state_before=before.stat.state,
        state_after=after.stat.state if after else None,
        notes=notes,
    )


def _stopped_now(after: Stance) -> str:
    pid, state = after.stat.pid, after.stat.state
    by = f" by process {after.traced_by}" if after.traced_by else ""
    return (
        f"ATTENTION: process {pid} is stopped{by} (state {state}) and was not before. "
        f"Unless somebody else meant it: kill -CONT {pid}."
    )
