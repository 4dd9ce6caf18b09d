"""Files out of a folder or archive that anybody may have made, under limits of our own.

Only regular files with plain names come out, never more bytes than the limits allow, whatever
sizes the archive claims. Nothing is written to disk.
"""

import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from app.domain.endpoints import MIB
from app.errors import Malformed, NotFound, TooLarge

MAX_ENTRIES = 1000
MAX_FILE_BYTES = 32 * MIB
MAX_TOTAL_BYTES = 128 * MIB
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError,
    OSError, NotImplementedError, RuntimeError, ValueError, OverflowError,
)  # fmt: skip


@dataclass(slots=True)
class Files:
    """What was taken out: contents by name, and what was left in, with the reason."""

    contents: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self, name: str, body: IO[bytes] | None, *, regular: bool) -> None:
        """Read one entry, or say why not; raises TooLarge over the limit for all together."""
        plain = _plain_name(name)
        if not regular or body is None:
            self.problems.append(f"{shown(name)}: not a regular file; left out.")
        elif plain is None:
            self.problems.append(f"{shown(name)}: a name that a bundle does not have; left out.")
        elif plain in self.contents:
            self.problems.append(f"{shown(name)}: there twice; the first is used.")
        else:
            self._read(plain, body)

    def _read(self, name: str, body: IO[bytes]) -> None:
        content = body.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            self.problems.append(f"{name}: more than {MAX_FILE_BYTES // MIB} MiB; left out.")
            return
        self.contents[name] = content
        if sum(map(len, self.contents.values())) > MAX_TOTAL_BYTES:
            raise TooLarge(f"The bundle unpacks to more than {MAX_TOTAL_BYTES // MIB} MiB.")


def files_in(path: Path) -> Files:
    """The files in the folder, ``.zip``, ``.tar`` or ``.tar.gz`` at *path*.

    Raises NotFound, Malformed or TooLarge.
    """
    if path.is_dir():
        return _folder(path)
    try:
        with path.open("rb") as archive:
            return files_of(archive)
    except FileNotFoundError as error:
        raise NotFound(f"There is no {path}.") from error
    except OSError as error:
        raise Malformed(f"{path} cannot be read: {error.strerror}.") from error


def files_of(archive: IO[bytes]) -> Files:
    """The files in an open archive; it is recognised by its contents, not by its name."""
    files = Files()
    start = archive.read(4)
    archive.seek(0)
    try:
        if start.startswith(b"PK"):
            _zip(archive, files)
        else:
            _tar(archive, files, packed=start.startswith(b"\x1f\x8b"))
    except _BROKEN as error:
        raise Malformed(f"Not an archive that can be read: {error}"[:300]) from error
    return files


def shown(name: str) -> str:
    """*name* cut to a length and without characters that a terminal or page would obey."""
    return ascii(name[:80])[1:-1]


def _folder(path: Path) -> Files:
    files = Files()
    for index, entry in enumerate(sorted(path.iterdir())):
        if index >= MAX_ENTRIES:
            raise TooLarge(f"The folder has more than {MAX_ENTRIES} entries.")
        try:
            with open(entry, "rb", opener=_no_link) as body:
                files.take(entry.name, body, regular=stat.S_ISREG(os.fstat(body.fileno()).st_mode))
        except OSError as error:
            files.problems.append(f"{shown(entry.name)}: {error.strerror}; left out.")
    return files


def _no_link(path: str, flags: int) -> int:
    """Opens neither a link nor waits for the other end of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _zip(archive: IO[bytes], files: Files) -> None:
    with zipfile.ZipFile(archive) as opened:
        entries = opened.infolist()
        _refuse_many(len(entries))
        for entry in entries:
            mode = entry.external_attr >> 16
            if entry.is_dir():
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                files.take(entry.filename, None, regular=False)
                continue
            with opened.open(entry) as body:
                files.take(entry.filename, body, regular=True)


def _tar(archive: IO[bytes], files: Files, *, packed: bool) -> None:
    plain: IO[bytes] = gzip.GzipFile(fileobj=archive) if packed else archive  # type: ignore[assignment]
    stream = io.BufferedReader(_Counted(plain))
    with tarfile.open(fileobj=stream, mode="r|") as opened:
        for index, entry in enumerate(_entries(opened)):
            _refuse_many(index)
            if not entry.isdir():
                body = opened.extractfile(entry) if entry.isreg() else None
                files.take(entry.name, body, regular=entry.isreg())


def _entries(opened: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (entry := opened.next()) is not None:
        yield entry


class _Counted(io.RawIOBase):
    """A stream that ends in TooLarge after so many bytes, however few they were packed in."""

    def __init__(self, inside: IO[bytes]) -> None:
        self._inside, self._left = inside, MAX_TOTAL_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        chunk = self._inside.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLarge(f"The bundle unpacks to more than {MAX_TOTAL_BYTES // MIB} MiB.")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _refuse_many(entries: int) -> None:
    if entries > MAX_ENTRIES:
        raise TooLarge(f"The archive has more than {MAX_ENTRIES} entries.")


def _plain_name(name: str) -> str | None:
    """The last part of *name* if it lies in at most one folder and is a name we would give."""
    if name.startswith("/") or "\\" in name or ":" in name:
        return None
    parts = [part for part in PurePosixPath(name).parts if part != "."]
    if not 1 <= len(parts) <= 2 or ".." in parts:
        return None
    last = parts[-1]
    plain = len(last) <= 100 and not last.startswith(".") and set(last) <= _NAME_CHARACTERS
    return last if plain else None
