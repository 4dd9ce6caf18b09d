"""The kernel's log of this boot: from /dev/kmsg, else from dmesg or the journal."""

import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.agent.touching.tools import run_tool
from app.domain.kernel_log import KernelLine, kernel_lines, kernel_record

KMSG = Path("/dev/kmsg")
MAX_LINES = 50_000  # the newest are kept
MAX_SECONDS = 2.0
TOOL_SECONDS = 5.0
_RECORD_BYTES = 8192  # the kernel gives one record a read, and refuses a smaller buffer
_TOOLS = (
    ("dmesg",),
    ("journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager", "-q", "-n", "20000"),
)


@dataclass(frozen=True, slots=True)
class KernelLog:
    """What could be read of it, oldest first, and from where."""

    lines: tuple[KernelLine, ...]
    source: str
    cut: bool = False  # there was more than was read


def read_kernel_log(kmsg: Path = KMSG) -> KernelLog | None:
    """The log; None where nobody lets us read a line of it, which says nothing about the kernel.

    In containers the device is often there and empty.
    """
    return next((log for log in _looks(kmsg) if log is not None and log.lines), None)


def _looks(kmsg: Path) -> Iterator[KernelLog | None]:
    """One after the other, the next only where it is wanted."""
    yield _from_device(kmsg)
    yield from map(_from_tool, _TOOLS)


def _from_device(kmsg: Path) -> KernelLog | None:
    try:
        descriptor = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        lines, cut = _drained(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return KernelLog(lines, str(kmsg), cut)


def _drained(descriptor: int) -> tuple[tuple[KernelLine, ...], bool]:
    """The lines there are now, and whether some are missing; raises OSError."""
    deadline = time.monotonic() + MAX_SECONDS
    lines: deque[KernelLine] = deque(maxlen=MAX_LINES)
    while time.monotonic() < deadline:
        try:
            record = os.read(descriptor, _RECORD_BYTES)
        except BlockingIOError:  # the end of it: what comes next has not happened yet
            break
        except BrokenPipeError:  # overwritten while we read: it goes on at the oldest there is
            continue
        if not record:
            break
        if line := kernel_record(record):
            lines.append(line)
    else:
        return tuple(lines), True
    return tuple(lines), len(lines) == MAX_LINES


def _from_tool(argv: tuple[str, ...]) -> KernelLog | None:
    run = run_tool(argv, deadline_seconds=TOOL_SECONDS)
    if run.status != 0:
        return None
    lines = tuple(kernel_lines(run.out.decode("utf-8", "replace")))
    return KernelLog(lines, " ".join(argv[:2]), cut=run.cut)
