"""Reading a CUDA coredump that is a file here, without ever trusting it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.clients.opening import as_text, opened
from app.clients.sandbox import Limits, Refused, run_apart
from app.domain.coredump.document import unreadable

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
    descriptor = opened(path)
    try:
        outcome = run_apart(_READER, descriptor, asked, LIMITS)
    finally:
        os.close(descriptor)
    if isinstance(outcome, Refused):
        return unreadable(file, f"rejected: {outcome.limit}", outcome.says, None)
    document: Mapping[str, Any] = outcome.value
    return document
