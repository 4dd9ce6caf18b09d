"""Bytes on their way to the disk: hashed and counted, and named only when they are whole there."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Self

from app.errors import NoSpace

CHUNK_BYTES = 1024 * 1024  # also: room is asked for again after so much was written


class Spool:
    """A file that is still being written. Leaving it removes what was not placed."""

    def __init__(self, folder: Path, room: Callable[[int], None]) -> None:
        """*room* is asked whether so many bytes may be written, and raises NoSpace."""
        self.size_bytes = 0
        self._hash = hashlib.sha256()
        self._room, self._granted_bytes = room, -1
        self._file = NamedTemporaryFile(dir=folder, delete=False)  # noqa: SIM115
        self._path = Path(self._file.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        """Add *data*; raises NoSpace before more is written than there is room for."""
        if self.size_bytes + len(data) > self._granted_bytes:
            self._granted_bytes = self.size_bytes + max(len(data), CHUNK_BYTES)
            self._room(self.size_bytes + len(data))
        try:
            self._file.write(data)
        except OSError as error:
            raise _full(error) from error
        self._hash.update(data)
        self.size_bytes += len(data)

    def place(self, path: Path) -> str:
        """Give the whole file its name, durably; its SHA-256."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _full(error) from error
        self._path.rename(path)
        sync_folder(path.parent)
        return self._hash.hexdigest()


def sync_folder(folder: Path) -> None:
    """Bring the names in *folder* to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _full(error: OSError) -> NoSpace:
    return NoSpace(
        f"The file cannot be written: {error.strerror}.",
        fix="Free space where the agent keeps its state.",
    )
