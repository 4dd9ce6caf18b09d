"""Stored bytes: each file once, under the SHA-256 of what it holds.

Bytes are spooled and hashed first and get their name when they are whole and on the disk, so
that a name never stands for half a file. Rows that speak of them are written afterwards: a
crash in between leaves an orphan for ``store.sweep``, never a row without bytes.
"""

import hashlib
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Self
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import GenericError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from app.errors import Damaged, Misconfigured, NoSpace, NotFound, TooLarge
from app.settings import Settings

CHUNK_BYTES = 1024 * 1024
SPACE_CHECK_BYTES = 16 * 1024 * 1024  # free space is looked at again after so much was written
SPOOL = "spool"  # folder in the data folder


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Bytes that are safely kept."""

    sha256: str
    size_bytes: int
    store: "ArtifactStore" = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What a listing of the store tells of one object."""

    sha256: str
    touched_at: datetime  # when it was last put, by any of the files that are equal


class Spool:
    """A file that is still being written: hashed, counted, and held to its limits."""

    def __init__(self, file: IO[bytes], *, max_bytes: int, min_free_bytes: int) -> None:
        self.path = Path(file.name)
        self.size_bytes = 0
        self._file, self._hash = file, hashlib.sha256()
        self._max_bytes, self._min_free_bytes = max_bytes, min_free_bytes
        self._check_space_at = 0

    def write(self, data: bytes) -> None:
        """Add *data*; raises TooLarge or NoSpace before a byte too many is written."""
        if self.size_bytes + len(data) > self._max_bytes:
            raise TooLarge(
                f"The file is larger than {self._max_bytes} bytes.",
                fix="Raise INCIDENT_CONSOLE_MAX_ARTIFACT_BYTES if it has to be kept whole.",
            )
        if self.size_bytes + len(data) > self._check_space_at:
            self._check_space(len(data))
        self._file.write(data)
        self._hash.update(data)
        self.size_bytes += len(data)

    def settle(self) -> str:
        """Bring everything to the disk; the SHA-256 of it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._hash.hexdigest()

    def _check_space(self, coming_bytes: int) -> None:
        check_space(self.path.parent, coming_bytes, min_free_bytes=self._min_free_bytes)
        self._check_space_at = self.size_bytes + SPACE_CHECK_BYTES


def check_space(folder: Path, coming_bytes: int, *, min_free_bytes: int) -> None:
    """Raise NoSpace where so many bytes more in *folder* would leave too little free."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes - coming_bytes < min_free_bytes:
        raise NoSpace(
            f"{free_bytes} bytes are free where artifacts are kept; "
            f"{min_free_bytes} must stay free.",
            fix="Free some space, or lower INCIDENT_CONSOLE_MIN_FREE_BYTES.",
        )


@dataclass(frozen=True)
class ArtifactStore:
    """The object store of STORAGE_URL and the folder where new files are spooled."""

    objects: ObjectStore
    root: Path | None  # of a local store; None for S3
    spool_folder: Path
    max_bytes: int
    min_free_bytes: int

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """The store that *settings* name; raises Misconfigured for an address that is none."""
        objects, root = _open_objects(settings.storage)
        # Beside the objects, so that a finished file is renamed and not copied.
        spool_folder = root.parent / f".{root.name}-{SPOOL}" if root else settings.data_dir / SPOOL
        spool_folder.mkdir(parents=True, exist_ok=True)
        return cls(
            objects, root, spool_folder, settings.max_artifact_bytes, settings.min_free_bytes
        )

    @contextmanager
    def spool(self) -> Generator[Spool]:
        """A file to write into; it is gone afterwards unless it was kept."""
        with NamedTemporaryFile(dir=self.spool_folder, delete=False) as file:
            try:
                yield Spool(file, max_bytes=self.max_bytes, min_free_bytes=self.min_free_bytes)
            finally:
                Path(file.name).unlink(missing_ok=True)

    def keep(self, spooled: Spool) -> StoredFile:
        """Give a whole file its name. Equal bytes are stored once."""
        return self.take(spooled.path, spooled.settle(), spooled.size_bytes)

    def take(self, file: Path, sha256: str, size_bytes: int) -> StoredFile:
        """Keep a whole *file* of that hash that is on the disk; in a local store it is moved."""
        if self.root:
            _place(file, self.root / _name(sha256))
        else:
            obstore.put(self.objects, _name(sha256), file)
        return StoredFile(sha256, size_bytes, self)

    def put(self, data: bytes | Iterable[bytes]) -> StoredFile:
        """Keep *data*, whole or in pieces."""
        with self.spool() as spooled:
            for piece in (data,) if isinstance(data, bytes) else data:
                spooled.write(piece)
            return self.keep(spooled)

    def stream(self, sha256: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from *start* to before *end*.

        Read whole, they are compared with their hash, and the last piece is held back until
        they match: raises Damaged instead of ending well. Raises NotFound before the first piece.
        """
        size_bytes = self.size(sha256)
        end = size_bytes if end is None else min(end, size_bytes)
        if (start, end) == (0, size_bytes):
            return self._verified(sha256)
        return self._part(sha256, start, end)

    def read(self, sha256: str, max_bytes: int) -> bytes:
        """All the bytes, verified; raises TooLarge, NotFound or Damaged."""
        if self.size(sha256) > max_bytes:
            raise TooLarge(f"The stored file is larger than {max_bytes} bytes.")
        return b"".join(self._verified(sha256))

    def size(self, sha256: str) -> int:
        """Bytes of a stored file; raises NotFound."""
        try:
            return obstore.head(self.objects, _name(sha256))["size"]
        except FileNotFoundError as error:
            raise NotFound("The bytes of this file are not in the store.") from error

    def has(self, sha256: str) -> bool:
        """Whether there are bytes under this hash; says nothing of their state."""
        try:
            self.size(sha256)
        except NotFound:
            return False
        return True

    def verify(self, sha256: str) -> bool:
        """Whether the bytes are there and still match their hash."""
        try:
            for _ in self._verified(sha256):
                pass
        except (NotFound, Damaged):
            return False
        return True

    def local_path(self, sha256: str) -> Path | None:
        """The file itself in a local store; None elsewhere. For reading only."""
        path = self.root / _name(sha256) if self.root else None
        return path if path and path.is_file() else None

    @contextmanager
    def as_file(self, sha256: str) -> Generator[Path]:
        """A file with these bytes, for reading only; a copy that goes afterwards if there is none.

        Raises NotFound, and Damaged or NoSpace for a copy.
        """
        path = self.local_path(sha256)
        if path is not None:
            yield path
            return
        with self.spool() as copy:
            for piece in self.stream(sha256):
                copy.write(piece)
            copy.settle()
            yield copy.path

    def delete(self, sha256: str) -> None:
        """Remove the bytes; nothing happens where there are none."""
        try:
            obstore.delete(self.objects, _name(sha256))
        except FileNotFoundError:
            return

    def listed(self) -> Iterator[StoredObject]:
        """Every stored object, in no order."""
        for batch in obstore.list(self.objects):
            for meta in batch:
                sha256 = str(meta["path"]).replace("/", "")
                yield StoredObject(sha256, meta["last_modified"])

    def sweep_spool(self, *, untouched: timedelta) -> int:
        """Remove files that a crash left half written; how many there were."""
        before = (datetime.now(UTC) - untouched).timestamp()
        stale = [path for path in self.spool_folder.iterdir() if path.stat().st_mtime < before]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)

    def _part(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        if start >= end:
            return
        options: obstore.GetOptions = {"range": (start, end)}
        result = obstore.get(self.objects, _name(sha256), options=options)
        for piece in result.stream(min_chunk_size=CHUNK_BYTES):
            yield bytes(piece)

    def _verified(self, sha256: str) -> Iterator[bytes]:
        try:
            result = obstore.get(self.objects, _name(sha256))
        except FileNotFoundError as error:
            raise NotFound("The bytes of this file are not in the store.") from error
        digest, held = hashlib.sha256(), b""
        for piece in result.stream(min_chunk_size=CHUNK_BYTES):
            if held:
                yield held
            held = bytes(piece)
            digest.update(held)
        if digest.hexdigest() != sha256:
            raise Damaged(
                "The stored bytes no longer match their hash.",
                why=f"They were stored as {sha256} and now hash to {digest.hexdigest()}.",
                fix="Restore the file from a backup of the artifact store.",
            )
        if held:
            yield held


def _open_objects(url: str) -> tuple[ObjectStore, Path | None]:
    parts = urlsplit(url)
    if parts.scheme == "file":
        root = Path(unquote(parts.path))
        root.mkdir(parents=True, exist_ok=True)
        return LocalStore(root), root
    if parts.scheme == "memory":
        return MemoryStore(), None
    if parts.scheme != "s3":
        raise Misconfigured(
            f"INCIDENT_CONSOLE_STORAGE_URL begins with {parts.scheme}:.",
            fix="Use file:///folder or s3://bucket/prefix.",
        )
    try:
        return from_url(url), None
    except GenericError as error:
        raise Misconfigured(f"INCIDENT_CONSOLE_STORAGE_URL is not usable: {error}") from error


def _name(sha256: str) -> str:
    """Where bytes lie: two digits as a folder, so that no folder grows without bound."""
    return f"{sha256[:2]}/{sha256[2:]}"


def _place(spooled: Path, path: Path) -> None:
    """Move a finished file to its place so that it is there after power loss too."""
    path.parent.mkdir(exist_ok=True)
    spooled.replace(path)
    for folder in (path.parent, path.parent.parent):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
