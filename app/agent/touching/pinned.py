"""Files of other processes, opened without trust in their paths.

A name can be exchanged between two looks at it, and opening a pipe or a device does something to
it. So a file is pinned first, which does nothing, then looked at, and that very file is opened.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pinned(pid: int, number: int) -> Iterator[tuple[int, os.stat_result]]:
    """Descriptor *number* of *pid*: a descriptor that only points at the file, and what it is.

    Raises OSError when it is gone or we may not.
    """
    descriptor = os.open(f"/proc/{pid}/fd/{number}", os.O_PATH | os.O_CLOEXEC)
    try:
        yield descriptor, os.fstat(descriptor)
    finally:
        os.close(descriptor)


def reopened(pin: int, flags: int) -> int:
    """The pinned file itself, opened with *flags*; never waits for another end of a pipe."""
    return os.open(f"/proc/self/fd/{pin}", flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def open_regular(folder: int, name: str) -> tuple[int, os.stat_result]:
    """The regular file *name* in *folder*, for reading; raises OSError for anything else."""
    pin = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        found = os.fstat(pin)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{name} is no regular file")
        return reopened(pin, os.O_RDONLY), found
    finally:
        os.close(pin)


def effective_uid(status: dict[str, str]) -> int | None:
    """Whose rights a process has, from ``/proc/PID/status``; None when that is not known."""
    words = status.get("Uid", "").split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None
