"""Opening a file here that somebody named: it may be anything, or nothing."""

import errno
import os
import stat
from pathlib import Path

from app.errors import NotFound, Rejected


def opened(path: Path) -> int:
    """A descriptor of the regular file *path*; raises NotFound and Rejected."""
    try:
        # Not waiting: opening a FIFO without a writer would.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {as_text(path)}.") from error
    except (OSError, ValueError) as error:
        raise _closed(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_file(path)
    return descriptor


def as_text(path: Path) -> str:
    """*path* as JSON can have it: bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _closed(path: Path, error: OSError | ValueError) -> Rejected:
    if not isinstance(error, OSError):
        return Rejected(f"{as_text(path)} cannot be opened: not a path.")
    if error.errno == errno.ENXIO:
        return _no_file(path)  # a socket
    fix = "Read it as its owner, or have a copy made." if error.errno == errno.EACCES else None
    return Rejected(f"{as_text(path)} cannot be opened: {error.strerror}.", fix=fix)


def _no_file(path: Path) -> Rejected:
    return Rejected(f"{as_text(path)} is no regular file.", fix="Name the dump itself.")
