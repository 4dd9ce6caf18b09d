"""Zip archives: which files they have, and the bytes of one of them, under limits of our own."""

import io
import stat
import zipfile
from collections.abc import Iterator
from typing import IO

from app.domain.dumps.scalars import escaped
from app.domain.dumps.streams import BROKEN, STEP_BYTES, Buffer, gathered

MOST_ENTRIES = 1000
DAMAGED = (
    *BROKEN, zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, OverflowError,
    ValueError,
)  # fmt: skip


class Archive:
    """The zip archive in *buffer*; raises one of DAMAGED where it is none."""

    def __init__(self, buffer: Buffer) -> None:
        self._archive = zipfile.ZipFile(_File(buffer))
        self._entries = [one for one in self._archive.infolist() if _is_plain(one)]

    def names(self) -> tuple[str, ...]:
        """Of its files, at most one more than MOST_ENTRIES; safe to print."""
        return tuple(escaped(one.filename) for one in self._entries[: MOST_ENTRIES + 1])

    def content(self, member: int, most_bytes: int) -> tuple[bytes, bool]:
        """The bytes of one file, and whether they are all; raises TooMuch and DAMAGED."""
        entry = self._entries[member]
        with self._archive.open(entry) as file:
            return gathered(_pieces(file), entry.compress_size, most_bytes)


def _is_plain(entry: zipfile.ZipInfo) -> bool:
    """Whether *entry* is a file: no folder, no link, nothing that the system keeps for itself."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    hidden = entry.filename.startswith("__MACOSX/")
    return not entry.is_dir() and kind in (0, stat.S_IFREG) and not hidden


class _File(io.RawIOBase):
    """A buffer as the file that zipfile wants; nothing of it is copied but what is read."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer, self._at = buffer, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._buffer)}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        piece = self._buffer[self._at : self._at + len(room)]
        room[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(STEP_BYTES):
        yield piece
