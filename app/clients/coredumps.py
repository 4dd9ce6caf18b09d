"""Reading a CUDA coredump that is a file here, without ever trusting it."""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.clients.sandbox import Limits, Refused, run_apart
from app.domain.coredump.document import unreadable
from app.errors import NotFound, Rejected

LIMITS = Limits(cpu_seconds=60, deadline_seconds=90.0)  # a compressed one of 8 GiB takes 40 s
_UNNAMEABLE = "FILE"  # in commands, for a path that cannot be pasted into a shell
_READER = "app.clients.coredump_reader"


def inspect_file(path: Path, *, called: str | None = None) -> Mapping[str, Any]:
    """The document of ``coredump inspect`` for *path*; its ``complete`` tells whether it was read.

    *called* is what a person has it as, for words and commands; None: by its path.

    Raises NotFound and Rejected for a path that has no regular file to be read.
    """
    file, whole = called or as_text(path), called or str(path.absolute())
    asked = {"file": file, "path": whole if whole.isprintable() else _UNNAMEABLE}
    descriptor = _opened(path)
    try:
        outcome = run_apart(_READER, descriptor, asked, LIMITS)
    finally:
        os.close(descriptor)
    if isinstance(outcome, Refused):
        return unreadable(file, f"rejected: {outcome.limit}", outcome.says, None)
    document: Mapping[str, Any] = outcome.value
    return document


def _opened(path: Path) -> int:
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


def _closed(path: Path, error: OSError | ValueError) -> Rejected:
    if not isinstance(error, OSError):
        return Rejected(f"{as_text(path)} cannot be opened: not a path.")
    if error.errno == errno.ENXIO:
        return _no_file(path)  # a socket
    fix = "Read it as its owner, or have a copy made." if error.errno == errno.EACCES else None
    return Rejected(f"{as_text(path)} cannot be opened: {error.strerror}.", fix=fix)


def _no_file(path: Path) -> Rejected:
    return Rejected(f"{as_text(path)} is no regular file.", fix="Name the dump itself.")


def as_text(path: Path) -> str:
    """*path* as JSON can have it: bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
