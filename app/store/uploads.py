"""Files that come in pieces, each from where the last one ended, also after a restart.

The pieces go to a file in a folder of its own; how long it is says how much is here. Whole, it is
hashed, sealed and moved into the store of artifacts. A lock on the file lets one request at a
time write, and even kill -9 gives it back.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.errors import Conflict, Forbidden, NotFound, Rejected, TooLarge
from app.store import attaching, audit, evidence
from app.store.artifacts import CHUNK_BYTES, SPACE_CHECK_BYTES, StoredFile, check_space
from app.store.attaching import Sent, Taken
from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.dump_tables import Upload
from app.store.stores import Stores

MOST_OPEN = 32  # uploads that are not sealed, of all people together
IDLE_KEPT = timedelta(hours=24)  # nothing came for so long: given up
FOLDER = "uploads"
LARGEST_ID = 2**63
_SHA256_DIGITS = 64


@dataclass(frozen=True, slots=True)
class NewUpload:
    """What its sender tells of a file before the first byte. *sha256* None: not told."""

    incident_id: int
    name: str
    size_bytes: int
    sha256: str | None = None
    media_type: str = "application/octet-stream"
    tier: str = "T2"


def open_upload(
    session: Session, stores: Stores, new: NewUpload, *, actor: Actor, at: datetime
) -> Upload:
    """An upload without a byte, in the caller's transaction.

    Raises TooLarge, Rejected, NoSpace where the disk has no room for it beside those that are
    under way, and Conflict where too many are.
    """
    _check(stores, new)
    open_ones = session.exec(select(Upload).where(col(Upload.sealed_at).is_(None))).all()
    if len(open_ones) >= MOST_OPEN:
        raise Conflict(
            f"{MOST_OPEN} uploads are under way.", fix="Finish or remove one of them first."
        )
    folder = _folder(stores)
    coming = sum(max(0, one.size_bytes - length(stores, one)) for one in open_ones)
    check_space(folder, coming + new.size_bytes, min_free_bytes=stores.settings.min_free_bytes)
    upload = Upload(
        incident_id=new.incident_id,
        file=secrets.token_hex(16),
        name=new.name,
        size_bytes=new.size_bytes,
        media_type=new.media_type,
        tier=new.tier,
        sha256=new.sha256,
        begun_by=actor.told,
        begun_at=at,
        touched_at=at,
    )
    session.add(upload)
    session.flush()
    (folder / upload.file).touch(mode=0o600)
    audit.note(session, actor, "upload.begin", f"upload:{upload.id}", at=at, name=new.name)
    return upload


def get_upload(session: Session, upload_id: int, *, actor: Actor) -> Upload:
    """The upload of that number; raises NotFound, and Forbidden to anybody but who began it."""
    upload = session.get(Upload, upload_id) if upload_id < LARGEST_ID else None
    if upload is None:
        raise NotFound(f"There is no upload {upload_id}.", fix="Begin it anew.")
    if upload.begun_by != actor.told:
        raise Forbidden(f"Upload {upload_id} was begun by {upload.begun_by}.")
    return upload


def length(stores: Stores, upload: Upload) -> int:
    """How many bytes of it are here; all of them once it is sealed."""
    if upload.sealed_at is not None:
        return upload.size_bytes
    try:
        return _path(stores, upload).stat().st_size
    except FileNotFoundError:
        return 0


class Appending:
    """An upload that one request adds to. Use within ``appending``."""

    def __init__(self, file: IO[bytes], upload: Upload, min_free_bytes: int) -> None:
        self.length = os.fstat(file.fileno()).st_size
        self._file, self._upload, self._min_free_bytes = file, upload, min_free_bytes
        self._check_space_at = self.length

    def write(self, data: bytes) -> None:
        """Add *data*; raises TooLarge and NoSpace before a byte too many is written."""
        if self.length + len(data) > self._upload.size_bytes:
            raise TooLarge(
                f"More came than the {self._upload.size_bytes} bytes that were told.",
                fix="Begin it anew with the right size.",
            )
        if data and self.length + len(data) > self._check_space_at:
            folder = Path(self._file.name).parent
            check_space(folder, len(data), min_free_bytes=self._min_free_bytes)
            self._check_space_at = self.length + SPACE_CHECK_BYTES
        self._file.write(data)
        self.length += len(data)


@contextmanager
def appending(stores: Stores, upload: Upload, *, offset: int) -> Generator[Appending]:
    """The upload, to be written to from *offset*; what was written is on the disk afterwards.

    Raises Conflict where *offset* is not where it ends, it is sealed, or another request writes.
    """
    with _alone(stores, upload) as file:
        added = Appending(file, upload, stores.settings.min_free_bytes)
        if added.length != offset:
            raise Conflict(
                f"Upload {upload.id} has {added.length} bytes, not {offset}.",
                fix=f"Go on at {added.length}.",
            )
        try:
            yield added
        finally:
            file.flush()
            os.fsync(file.fileno())


def touch(session: Session, upload: Upload, *, at: datetime) -> None:
    """Note that something came; nothing else of its row, which another request may have changed."""
    noted = update(Upload).where(col(Upload.id) == upload.id)
    session.execute(noted.values(touched_at=at))


def finish(stores: Stores, upload: Upload, *, actor: Actor, at: datetime) -> Taken:
    """Seal a whole upload and attach it to its incident; asked again, the same answer.

    Raises Conflict where bytes are missing, and Rejected where they are not those that were told:
    then the upload is gone.
    """
    artifact_id = upload.artifact_id or _attached_before(stores, upload)
    if artifact_id is not None:
        return attaching.known(stores, artifact_id)
    stored = _sealed(stores, upload, at=at)
    came_from = f"upload from {actor.address or 'an unknown address'}"
    sent = Sent(upload.name, came_from, upload.media_type, upload.tier)
    taken = attaching.take_in(
        stores, stored, sent, incident_id=upload.incident_id, actor=actor, at=at
    )
    with writing(stores.engine) as session:
        session.get_one(Upload, upload.id).artifact_id = taken.artifact_id
    return taken


def remove(session: Session, stores: Stores, upload: Upload, *, actor: Actor, at: datetime) -> None:
    """Give an upload up; what it became, if it was finished, stays."""
    audit.note(session, actor, "upload.remove", f"upload:{upload.id}", at=at, name=upload.name)
    session.delete(upload)
    _path(stores, upload).unlink(missing_ok=True)


def sweep(stores: Stores, *, at: datetime) -> int:
    """Remove uploads to which nothing came for long, and pieces that no upload names; how many.

    Only files of uploads are touched, never evidence. Each host sweeps its own folder.
    """
    with writing(stores.engine) as session:
        idle = select(Upload).where(Upload.touched_at < at - IDLE_KEPT)
        for upload in session.exec(idle).all():
            session.delete(upload)
    with reading(stores.engine) as session:
        known = set(session.exec(select(Upload.file)))
    before = (at - IDLE_KEPT).timestamp()
    swept = 0
    for path in _folder(stores).iterdir():
        if path.name not in known and path.stat().st_mtime < before:
            path.unlink(missing_ok=True)
            swept += 1
    return swept


def _attached_before(stores: Stores, upload: Upload) -> int | None:
    """What a finish that was cut off after it attached the file made of it."""
    if upload.sealed_at is None or upload.sha256 is None:
        return None
    with reading(stores.engine) as session:
        same = evidence.equal_bytes(session, upload.incident_id, upload.sha256)
    return same.id if same and not same.purged_at and same.taken_at >= upload.sealed_at else None


def _check(stores: Stores, new: NewUpload) -> None:
    most = stores.settings.max_artifact_bytes
    if new.size_bytes > most:
        raise TooLarge(
            f"The file is larger than {most} bytes.",
            fix="Raise INCIDENT_CONSOLE_MAX_ARTIFACT_BYTES if it has to be kept whole.",
        )
    if new.size_bytes < 1:
        raise Rejected("The file is empty.")
    digits = new.sha256 or "0" * _SHA256_DIGITS
    if len(digits) != _SHA256_DIGITS or set(digits) - set("0123456789abcdef"):
        raise Rejected("A SHA-256 has 64 hexadecimal digits in lower case.")
    attaching.check_tier(new.tier)


def _sealed(stores: Stores, upload: Upload, *, at: datetime) -> StoredFile:
    """The bytes, in the store of artifacts under the hash that the row was told first."""
    if upload.sealed_at is not None:
        assert upload.sha256 is not None
        if stores.artifacts.has(upload.sha256):
            return StoredFile(upload.sha256, upload.size_bytes, stores.artifacts)
    with _alone(stores, upload) as file:
        here = os.fstat(file.fileno()).st_size
        if here != upload.size_bytes:
            raise Conflict(
                f"Upload {upload.id} has {here} of {upload.size_bytes} bytes.",
                fix=f"Go on at {here}.",
            )
        digest = _hashed(stores, upload)
        with writing(stores.engine) as session:
            row = session.get_one(Upload, upload.id)
            row.sha256, row.sealed_at, row.touched_at = digest, at, at
        path = _path(stores, upload)
        os.utime(path)  # to the sweep of the store it is as new as its row
        stored = stores.artifacts.take(path, digest, here)
        path.unlink(missing_ok=True)  # still there where the store is elsewhere
    return stored


def _hashed(stores: Stores, upload: Upload) -> str:
    """The SHA-256 of what came; raises Rejected, and gives the upload up, where it is another."""
    path, digest = _path(stores, upload), hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    if upload.sha256 in (None, digest.hexdigest()):
        return digest.hexdigest()
    path.unlink(missing_ok=True)
    with writing(stores.engine) as session:
        session.delete(session.get_one(Upload, upload.id))
    raise Rejected(
        "What came is not what was told.",
        why=f"Its SHA-256 is {digest.hexdigest()}, not {upload.sha256}.",
        fix="Send it once more.",
    )


@contextmanager
def _alone(stores: Stores, upload: Upload) -> Generator[IO[bytes]]:
    """The file of an upload, held by nobody else; raises Conflict."""
    try:
        with _path(stores, upload).open("r+b") as file:
            file.seek(0, os.SEEK_END)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
    except BlockingIOError as error:
        raise Conflict(f"Upload {upload.id} is written to by another request.") from error
    except FileNotFoundError as error:
        raise Conflict(
            f"The pieces of upload {upload.id} are not on this host.",
            why="It was begun at another server of this console, or is over.",
        ) from error


def _path(stores: Stores, upload: Upload) -> Path:
    return _folder(stores) / upload.file


def _folder(stores: Stores) -> Path:
    """On the disk of the artifacts where that is a local one: a whole file is moved there."""
    spool = stores.artifacts.spool_folder
    folder = spool.with_name(f"{spool.name}-{FOLDER}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
