"""How a process stands just now: whether it may be paused, and whether anything in it moves."""

import time
from dataclasses import dataclass
from pathlib import Path

from app.agent.processes.freezer import is_frozen
from app.agent.processes.proc import PROC, Stat, pids, read_stat, read_status

ENDED = frozenset("ZXx")
STOPPED = frozenset("Tt")
UNMOVED = frozenset("TtD")
BETWEEN_LOOKS_SECONDS = 0.03  # a page from a disk comes sooner than that
MOST_THREADS = 2000  # looked at; servers have hundreds
UNTIL_RESUMED_SECONDS = 0.5  # a tracer that is gone lets go within microseconds


@dataclass(frozen=True, slots=True)
class Stance:
    """One look at a process.

    *asleep*: some thread sleeps in the kernel, seen twice, and cannot be paused before it wakes.
    *unmoved*: no thread can run, so that a reading without a pause is exact.
    """

    stat: Stat
    traced_by: int | None
    asleep: bool
    frozen: bool
    unmoved: bool

    @property
    def cannot_be_paused(self) -> str | None:
        """Why a blocking py-spy would fail or hang here, in words; None where it would not."""
        if self.frozen:
            return "frozen by its cgroup"
        if self.traced_by:
            return f"traced by process {self.traced_by}"
        if self.stat.state in STOPPED:
            return f"stopped (state {self.stat.state})"
        return "asleep in the kernel (state D)" if self.asleep else None


def stance(pid: int, root: Path = PROC) -> Stance | None:
    """How process *pid* stands; None when there is none. A zombie stands in state Z."""
    stat = read_stat(pid, root)
    if stat is None:
        return None
    frozen = is_frozen(pid, root=root)
    states = _thread_states(pid, root)
    return Stance(
        stat=stat,
        traced_by=_tracer(pid, root),
        asleep=_stays_asleep(pid, states, root),
        frozen=frozen,
        unmoved=frozen or (bool(states) and UNMOVED.issuperset(states.values())),
    )


def after_a_tool(pid: int, before: Stance, root: Path = PROC) -> Stance | None:
    """How it stands once a tool is off it; a moment is given to what the kernel still resumes."""
    deadline = time.monotonic() + UNTIL_RESUMED_SECONDS
    now = stance(pid, root)
    while now and newly_stopped(before, now) and time.monotonic() < deadline:
        time.sleep(BETWEEN_LOOKS_SECONDS)
        now = stance(pid, root)
    return now


def newly_stopped(before: Stance, now: Stance) -> bool:
    """Whether it is stopped, and was not: nobody may leave a server like that unsaid."""
    return now.stat.state in STOPPED and before.stat.state not in STOPPED


def _tracer(pid: int, root: Path) -> int | None:
    told = read_status(pid, root).get("TracerPid", "0")
    return int(told) if told.isdigit() and told != "0" else None


def _stays_asleep(pid: int, states: dict[int, str], root: Path) -> bool:
    """Whether a thread in D is so at a second look as well: one disk read is no reason."""
    asleep = [thread for thread, state in states.items() if state == "D"]
    if not asleep:
        return False
    time.sleep(BETWEEN_LOOKS_SECONDS)
    again = _thread_states(pid, root)
    return any(again.get(thread) == "D" for thread in asleep)


def _thread_states(pid: int, root: Path) -> dict[int, str]:
    tasks = root / str(pid) / "task"
    looked_at = ((thread, read_stat(thread, tasks)) for thread in pids(tasks)[:MOST_THREADS])
    return {thread: stat.state for thread, stat in looked_at if stat}
