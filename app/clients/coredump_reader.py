"""The program that reads one CUDA coredump, started by ``coredumps`` in a process of its own."""

import os
from collections.abc import Mapping
from typing import Any

from app.clients.confined import confined
from app.domain.coredump.document import unreadable
from app.domain.coredump.inspect import inspect_coredump


def answer(descriptor: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The document of the coredump that is open at *descriptor*."""

    def read(offset: int, length: int) -> bytes:
        pieces = []
        while length and (piece := os.pread(descriptor, length, offset)):
            pieces.append(piece)
            offset, length = offset + len(piece), length - len(piece)
        return b"".join(pieces)

    size_bytes = os.fstat(descriptor).st_size
    try:
        return inspect_coredump(asked["file"], asked["path"], size_bytes, read)
    except OSError as error:  # of the disk, or of the network that it lies behind
        says = f"Reading it failed: {error.strerror}."
        return unreadable(asked["file"], "not readable", says, None)


if __name__ == "__main__":
    confined(answer)
