"""What the agent took, and files of others that it tells of: ids, hashes, and their bytes.

Bytes are on the disk under their name before the manifest speaks of them, so that a crash leaves
bytes without a line, never a line without bytes. Nothing is ever deleted: the quota refuses.
"""

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Literal, NamedTuple, Self

from pydantic import BaseModel, ValidationError

from app.agent.kept.lines import LineFile
from app.agent.kept.spool import CHUNK_BYTES, Spool
from app.errors import Conflict, Damaged, NoSpace, NotFound, Rejected
from app.protocol.messages import FileTaken

MIN_FREE_BYTES = 256 * 1024**2  # stays free whatever the quota: the servers write there too
_NAME_CHARACTERS = 200
_MAX_PLACES, _PLACE_CHARACTERS = 200, 200  # told of what was masked: a line has its limit
Tier = Literal["T0", "T1", "T2"]


class Identity(NamedTuple):
    """What tells that a file is still the same one, unchanged."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int


class Held(BaseModel):
    """A line of the manifest; *path* is None for bytes of our own."""

    file: FileTaken
    identity: Identity
    path: str | None = None


class AgentFiles:
    """The files of one state folder. Safe between threads, and beside other processes."""

    def __init__(self, folder: Path, quota_bytes: int) -> None:
        self.folder, self.quota_bytes = folder, quota_bytes
        self._manifest = LineFile(folder / "manifest.jsonl")
        self._held: dict[str, Held] = {}
        self._lock = Lock()

    @classmethod
    def open(cls, folder: Path, *, quota_bytes: int) -> Self:
        """The files in *folder*, which is made where it is missing, readable by us alone."""
        for part in (folder, folder / "kept", folder / "spool"):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder, quota_bytes)

    def keep(
        self,
        data: bytes | Iterable[bytes],
        *,
        name: str,
        kind: str,
        process_id: str | None = None,
        tier: Tier = "T1",
        redacted: Sequence[str] = (),
    ) -> FileTaken:
        """Keep *data* for good; raises NoSpace with nothing left behind."""
        file_id = secrets.token_hex(16)
        path = self.folder / "kept" / file_id
        with Spool(self.folder / "spool", self.room) as spool:
            for piece in (data,) if isinstance(data, bytes) else data:
                spool.write(piece)
            sha256 = spool.place(path)
        taken = FileTaken(
            id=file_id,
            name=_printable(name),
            kind=kind,
            size_bytes=spool.size_bytes,
            sha256=sha256,
            taken_at=datetime.now(UTC),
            process_id=process_id,
            tier=tier,
            redacted=[place[:_PLACE_CHARACTERS] for place in redacted[:_MAX_PLACES]],
        )
        return self._note(Held(file=taken, identity=_identity(path.stat())))

    def adopt(
        self,
        path: Path,
        *,
        name: str,
        kind: str,
        process_id: str | None = None,
        tier: Tier = "T2",
    ) -> FileTaken:
        """Tell of a file that stays where it is; the same file is told of once.

        Raises NotFound, Rejected for what is no regular file, Conflict while it still changes.
        """
        if not str(path).isprintable():
            raise Rejected("Its path has characters that cannot be written down.")
        with _open_regular(path) as opened:
            identity = _identity(os.fstat(opened.fileno()))
            if known := self._adopted(path, identity):
                return known
            sha256 = _hash(opened)
            if _identity(os.fstat(opened.fileno())) != identity:
                raise Conflict(f"{path.name} changed while it was read.", fix="Try again later.")
        taken = FileTaken(
            id=secrets.token_hex(16),
            name=_printable(name),
            kind=kind,
            size_bytes=identity.size_bytes,
            sha256=sha256,
            taken_at=datetime.now(UTC),
            process_id=process_id,
            tier=tier,
        )
        return self._note(Held(file=taken, identity=identity, path=str(path)))

    def open_file(self, file_id: str) -> tuple[BinaryIO, FileTaken]:
        """The bytes and what they are; raises NotFound or Damaged."""
        held = self._find(file_id)
        opened = _open_regular(Path(held.path) if held.path else self.folder / "kept" / file_id)
        try:
            self._check(held, opened)
        except Damaged:
            opened.close()
            raise
        return opened, held.file

    def find(self, file_id: str) -> FileTaken:
        """What the file is, whatever became of its bytes; raises NotFound."""
        return self._find(file_id).file

    def listing(self, after: datetime | None = None) -> list[FileTaken]:
        """What was taken later than *after*, in the order of taking."""
        files = [held.file for held in self._all().values()]
        return [file for file in files if after is None or file.taken_at > after]

    def room(self, needed_bytes: int) -> None:
        """Raises NoSpace where *needed_bytes* more would break the quota or fill the disk."""
        used_bytes = self.used_bytes()
        if used_bytes + needed_bytes > self.quota_bytes:
            raise NoSpace(
                f"The agent keeps {used_bytes} bytes of its quota of {self.quota_bytes}.",
                fix="Download what it holds, then remove it by hand, or raise --quota-bytes.",
            )
        free_bytes = shutil.disk_usage(self.folder).free
        if free_bytes - needed_bytes < MIN_FREE_BYTES:
            raise NoSpace(
                f"{free_bytes} bytes are free on the agent's disk; {MIN_FREE_BYTES} must stay.",
                fix=f"Free space on the disk of {self.folder}.",
            )

    def used_bytes(self) -> int:
        """Bytes of our own; files of others do not count."""
        return sum(held.file.size_bytes for held in self._all().values() if held.path is None)

    def _note(self, held: Held) -> FileTaken:
        self._manifest.append(held.model_dump(mode="json"))
        return held.file

    def _all(self) -> dict[str, Held]:
        with self._lock:
            for line in self._manifest.grown():
                try:
                    held = Held.model_validate(line)
                except ValidationError:
                    continue  # of another version, or damaged: the file itself is left alone
                self._held[held.file.id] = held
            return dict(self._held)

    def _find(self, file_id: str) -> Held:
        held = self._all().get(file_id)
        if held is None:
            raise NotFound("The agent holds no such file.")
        return held

    def _adopted(self, path: Path, identity: Identity) -> FileTaken | None:
        same = (held for held in self._all().values() if held.path == str(path))
        return next((held.file for held in same if held.identity == identity), None)

    def _check(self, held: Held, opened: BinaryIO) -> None:
        """Raises Damaged unless these are the bytes that were taken."""
        identity = _identity(os.fstat(opened.fileno()))
        if identity == held.identity:
            return
        if held.path is None and _hash(opened) == held.file.sha256:  # moved with its folder
            opened.seek(0)
            with self._lock:
                self._held[held.file.id] = held.model_copy(update={"identity": identity})
            return
        raise Damaged(
            f"{held.file.name} is no longer the file that was taken.",
            why="It was replaced or written to since then.",
        )


def _open_regular(path: Path) -> BinaryIO:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # never waits for a writer
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise NotFound(f"{path.name} cannot be opened: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Rejected(f"{path.name} is no regular file.")
    return os.fdopen(descriptor, "rb")


def _identity(found: os.stat_result) -> Identity:
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _hash(opened: BinaryIO) -> str:
    digest = hashlib.sha256()
    while piece := opened.read(CHUNK_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def _printable(name: str) -> str:
    """*name* fit for a header and a list: no separators, nothing unprintable, cut."""
    kept = "".join(char if char.isprintable() and char not in '/\\"' else "_" for char in name)
    return kept[:_NAME_CHARACTERS] or "unnamed"
