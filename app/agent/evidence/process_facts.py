"""What /proc says of one process of a server: whether it moves, waits, or runs out of files."""

import re
from pathlib import Path

from app.agent.evidence.sizes import size_text
from app.agent.processes.proc import PROC, open_files, pid_of
from app.agent.touching.small_files import read_small
from app.domain.counting import counted
from app.protocol.messages import Fact, Process

_FILES_LIMIT = re.compile(r"^Max open files\s+(\d+|unlimited)", re.MULTILINE)
_NEARLY_ALL = 0.9
_STATES = {
    "R": ("runs", "quiet"),
    "S": ("sleeps", "quiet"),
    "I": ("is idle", "quiet"),
    "D": ("waits in the kernel and cannot be interrupted", "warn"),
    "T": ("is stopped", "bad"),
    "t": ("is stopped by a debugger", "warn"),
    "Z": ("has ended and is a zombie", "bad"),
    "X": ("has ended", "bad"),
}


def process_facts(process: Process, proc: Path = PROC) -> list[Fact]:
    """State, memory and open files of *process*."""
    return [_state(process, proc), _open_files(process, proc)]


def name_of(process: Process) -> str:
    """``TP0 (pid 4711)``, or the role where there is no rank."""
    label = process.rank.label if process.rank else process.role
    return f"{label} (pid {process.pid})"


def _state(process: Process, proc: Path) -> Fact:
    source = f"{proc}/{process.pid}/stat"
    if process.state not in _STATES:
        says = f"The state of {name_of(process)} is not known."
        return Fact(topic="process", says=says, level="unknown", source=source)
    does, level = _STATES[process.state]
    parts = [f"{name_of(process)} {does}"]
    if process.wchan:
        parts.append(f"its main thread waits in {process.wchan}")
    if process.rss_bytes is not None:
        parts.append(f"it holds {size_text(process.rss_bytes)} of memory")
    if process.started_at is not None:
        parts.append(f"it started at {process.started_at:%Y-%m-%d %H:%M:%S} UTC")
    says = "; ".join(parts) + "."
    return Fact.model_validate({"topic": "process", "says": says, "level": level, "source": source})


def _open_files(process: Process, proc: Path) -> Fact:
    pid = pid_of(process.id)
    source = f"{proc}/{pid}/fd"
    opened = open_files(pid, proc)
    limit = _FILES_LIMIT.search(read_small(proc / str(pid) / "limits") or "")
    if opened is None or limit is None:
        says = f"How many files {name_of(process)} has open is not known."
        return Fact(topic="process", says=says, level="unknown", source=source)
    unlimited = limit[1] == "unlimited"
    full = not unlimited and opened > _NEARLY_ALL * int(limit[1])
    files = counted(opened, "file") if unlimited else f"{opened} of {limit[1]} files"
    says = f"{name_of(process)} has {files} open."
    return Fact(topic="process", says=says, level="bad" if full else "quiet", source=source)
