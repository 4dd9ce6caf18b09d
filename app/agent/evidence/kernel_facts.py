"""Facts from the kernel's log: GPU errors and processes killed for memory, with their time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from app.agent.evidence.kernel_log import KernelLog
from app.domain.counting import counted
from app.domain.kernel_log import KernelLine, MemoryKill, Xid, memory_kills, xids
from app.protocol.messages import Fact

MAX_FACTS = 40  # of each kind; the newest are told
_TAIL_LINES = 2000


def kernel_facts(log: KernelLog | None, booted_at: datetime | None) -> list[Fact]:
    """Xid errors and memory kills; *booted_at* turns the kernel's seconds into a time."""
    if log is None:
        says = "The kernel's log cannot be read: GPU errors and memory kills are not known."
        return [Fact(topic="kernel log", says=says, level="unknown", source="/dev/kmsg, dmesg")]
    errors, kills = xids(log.lines), memory_kills(log.lines)
    facts = [_xid_fact(one, booted_at, log.source) for one in errors[-MAX_FACTS:]]
    facts += [_kill_fact(one, booted_at, log.source) for one in kills[-MAX_FACTS:]]
    return [*_summary(log, len(errors), len(kills)), *facts]


def log_text(log: KernelLog) -> str:
    """The newest lines, as ``dmesg`` prints them, to be kept."""
    return "".join(map(_printed, log.lines[-_TAIL_LINES:]))


def _summary(log: KernelLog, errors: int, kills: int) -> Iterator[Fact]:
    since = (
        f" in the last {counted(len(log.lines), 'line')}"
        if log.cut
        else " since boot, as far as it goes"
    )
    if not errors:
        # No line is no proof: the log is a ring, and a host without a GPU has none.
        says = f"The kernel's log has no GPU error (Xid){since}."
        yield Fact(topic="kernel log", says=says, level="quiet", source=log.source)
    if not kills:
        says = f"The kernel's log has no process killed for memory{since}."
        yield Fact(topic="kernel log", says=says, level="quiet", source=log.source)


def _xid_fact(xid: Xid, booted_at: datetime | None, source: str) -> Fact:
    meaning = f": {xid.meaning}" if xid.meaning else ""
    pid = f", pid {xid.pid}" if xid.pid is not None else ""
    says = f"{_when(xid.seconds, booted_at)}: Xid {xid.number} on {xid.device}{pid}{meaning}."
    return Fact(topic="kernel log", says=says, level=xid.level, source=source)


def _kill_fact(kill: MemoryKill, booted_at: datetime | None, source: str) -> Fact:
    why = "at the limit of its control group" if kill.limit else "as the host ran out of memory"
    when = _when(kill.seconds, booted_at)
    says = f"{when}: the kernel killed {kill.name} (pid {kill.pid}) {why}."
    return Fact(topic="kernel log", says=says, level="bad", source=source)


def _when(seconds: float, booted_at: datetime | None) -> str:
    if booted_at is None:
        return f"{seconds:.0f} s after boot"
    return f"{booted_at + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S} UTC"


def _printed(line: KernelLine) -> str:
    return f"[{line.seconds:12.6f}] {line.text}\n"
