"""The clock of the host: what it shows, and whether something keeps it right.

Layout of ``struct timex`` and the states of the clock: adjtimex(2) of Linux, 64 bit.
"""

import ctypes
from collections.abc import Callable
from datetime import UTC, datetime

from app.agent.touching.tools import run_tool
from app.protocol.messages import Fact

_UNSYNCHRONISED = 0x0040  # STA_UNSYNC
_ERROR = 5  # TIME_ERROR: not synchronised
_TIMEX_BYTES = 256  # longer than the structure, on every architecture
_STATUS_OFFSET = 40  # after modes with padding and four longs
_TOOL_SECONDS = 3.0

Synchronised = Callable[[], bool | None]


def clock_fact(now: datetime, synchronised: Synchronised | None = None) -> Fact:
    """What the clock shows and whether it is kept right; that it is right nobody can tell here."""
    kept = (synchronised or clock_is_kept)()
    shows = now.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    says, level = {
        True: (f"The clock shows {shows} and is kept by NTP.", "good"),
        False: (f"The clock shows {shows}; the kernel says that nothing keeps it right.", "warn"),
        None: (f"The clock shows {shows}; whether NTP keeps it is not known.", "unknown"),
    }[kept]
    return Fact.model_validate(
        {"topic": "clock", "says": says, "level": level, "source": "adjtimex, timedatectl"}
    )


def clock_is_kept() -> bool | None:
    """Whether the kernel or systemd says that NTP keeps the clock; None: neither can tell."""
    kept = _kernel_says()
    return kept if kept is not None else _systemd_says()


def _kernel_says() -> bool | None:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "adjtimex") or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)  # modes = 0: only asks
    state = libc.adjtimex(timex)
    if state < 0:
        return None  # a seccomp filter may refuse even the question
    status = ctypes.c_int.from_buffer(timex, _STATUS_OFFSET).value
    return state != _ERROR and not status & _UNSYNCHRONISED


def _systemd_says() -> bool | None:
    argv = ("timedatectl", "show", "-p", "NTPSynchronized", "--value")
    run = run_tool(argv, deadline_seconds=_TOOL_SECONDS)
    return {b"yes": True, b"no": False}.get(run.out.strip()) if run.status == 0 else None
