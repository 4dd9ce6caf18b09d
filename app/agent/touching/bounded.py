"""Work that has ended for whoever waits for it after so many seconds, whatever it hangs on.

A thread that sleeps in the kernel, on a disk that is gone, outlives even SIGKILL, and a process
cannot end before its threads. So the work is done by a child that nobody has to wait for: it holds
none of our outputs, and what it started is killed with it.
"""

import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from app.agent.processes.proc import pids, read_stat

Tell = Callable[[str], None]

KILL_SECONDS = 0.5  # before the end: to kill what was started
_LAST_SECONDS = 0.2  # before the end: when even telling what was done hangs
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of the child become our children
_PIECE_BYTES = 65_536
_SWEEPS = 20


def seconds_since_start() -> float:
    """How long this process runs already: what it imported counts too. 0 where not known."""
    stat = read_stat(os.getpid())
    if stat is None:
        return 0.0
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)  # no clock that is set changes this one
    return max(0.0, since_boot - stat.start_ticks / os.sysconf("SC_CLK_TCK"))


def run_bounded(work: Callable[[Tell], None], tell: Tell, *, seconds: float) -> bool:
    """Do *work* in a child, and *tell* each line that it tells; False when it was cut off.

    Should *tell* itself hang, this process ends with status 0.
    """
    deadline = time.monotonic() + seconds
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, max(0.01, seconds - _LAST_SECONDS))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_the_child(work, writing)
    os.close(writing)
    try:
        return _told_to_the_end(reading, tell, deadline - KILL_SECONDS)
    finally:
        os.close(reading)
        _kill_all()
        signal.setitimer(signal.ITIMER_REAL, 0)


def _be_the_child(work: Callable[[Tell], None], writing: int) -> None:
    """Never returns. What it prints, and what breaks it, is a line as well."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        signal.setitimer(signal.ITIMER_REAL, 0)
        work(_write)
    finally:
        if sys.exc_info()[0] is not None:
            _write(traceback.format_exc())
        os._exit(0)


def _write(line: str) -> None:
    with suppress(OSError):  # nobody listens any more
        os.write(1, line.encode("utf-8", "replace") + b"\n")


def _told_to_the_end(reading: int, tell: Tell, deadline: float) -> bool:
    unread = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([reading], [], [], left)[0]:
            return False
        piece = os.read(reading, _PIECE_BYTES)
        *lines, unread = (unread + piece).split(b"\n")
        for line in lines:
            tell(line.decode("utf-8", "replace"))
        if not piece:
            return True
    return False


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    _kill_all()
    os._exit(0)


def _kill_all() -> None:
    """Kill our children and, as they become ours then, theirs; wait for none of them."""
    for _ in range(_SWEEPS):
        children = [pid for pid in pids() if _is_ours(pid)]
        if not children:
            return
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.005)


def _is_ours(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.parent_pid == os.getpid()
