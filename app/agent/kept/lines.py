"""Files of JSON lines that only ever grow: the manifest and the ledger.

A line counts once it is whole: what a crash or a full disk left of one is skipped by readers and
never touched. Several processes may append to one file, and each sees the lines of the others.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock

import orjson

from app.errors import NoSpace

_END = b"\n"
MAX_LINE_BYTES = 64 * 1024


class LineFile:
    """One append-only file, readable by its owner alone. Safe between threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # up to here lines were read
        self._reading = Lock()

    def append(self, line: Mapping[str, object], *, durable: bool = True) -> None:
        """Add *line*; it is on the disk afterwards if *durable*. Raises NoSpace."""
        data = orjson.dumps(dict(line)) + _END
        try:
            self._append(data, durable=durable)
        except OSError as error:
            raise NoSpace(
                f"{self._path.name} cannot be written: {error.strerror}.",
                fix="Free space where the agent keeps its state.",
            ) from error

    def grown(self) -> Iterator[dict[str, object]]:
        """The lines that came since the last call, all at first."""
        with self._reading:
            found = list(self._whole_lines())
        for line in found:
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # torn by a crash
            if isinstance(value, dict):
                yield value

    def _append(self, data: bytes, *, durable: bool) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _write_all(descriptor, (_END if _torn(descriptor) else b"") + data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _whole_lines(self) -> Iterator[bytes]:
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(_END):
                    return  # still being written, or torn: the next append ends it
                self._offset += len(line)
                if len(line) <= MAX_LINE_BYTES:
                    yield line


def _torn(descriptor: int) -> bool:
    size_bytes = os.fstat(descriptor).st_size
    return size_bytes > 0 and os.pread(descriptor, 1, size_bytes - 1) != _END


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
