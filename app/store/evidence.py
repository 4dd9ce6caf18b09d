"""Artifacts as evidence: what is attached to an incident, from where, whether it is still whole.

A row is never deleted. Purging leaves it as a tombstone and removes the bytes afterwards, unless
another row still needs equal ones.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from io import BytesIO
from typing import NotRequired, TypedDict, Unpack

from sqlalchemy import text
from sqlmodel import Session, col, select

from app.clients.bundle_files import read_archive
from app.domain.capture import Bundle
from app.domain.endpoints import MIB
from app.domain.playbook import ArtifactAttached, ArtifactPurged
from app.errors import Conflict, NotFound, Rejected
from app.store import audit, dumps, timeline
from app.store.artifacts import StoredFile
from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Artifact, CaptureRow, Incident

NOT_RECOGNISED = "not recognised yet"
SHOWN_NAME_LENGTH = 200
MAX_ARCHIVE_BYTES = 64 * MIB  # a larger upload is kept, but not looked into


class Custody(TypedDict):
    """Where an artifact comes from and what it is evidence of; see ``tables.Artifact``."""

    name: str
    taken_from: str
    kind: NotRequired[str]
    tier: NotRequired[str]
    media_type: NotRequired[str]
    covers_from: NotRequired[datetime | None]
    covers_to: NotRequired[datetime | None]


def get_artifact(session: Session, artifact_id: int) -> Artifact:
    """The artifact of that number, purged or not; raises NotFound."""
    artifact = session.get(Artifact, artifact_id)
    if artifact is None:
        raise NotFound(f"There is no artifact {artifact_id}.")
    return artifact


def artifacts_of(session: Session, incident_id: int) -> Sequence[Artifact]:
    """The artifacts of an incident, newest first, tombstones included."""
    query = select(Artifact).where(Artifact.incident_id == incident_id)
    return session.exec(query.order_by(col(Artifact.id).desc())).all()


def equal_bytes(session: Session, incident_id: int, sha256: str) -> Artifact | None:
    """The artifact of an incident with these bytes; a tombstone only where no other is left."""
    query = select(Artifact).where(Artifact.incident_id == incident_id, Artifact.sha256 == sha256)
    rows = session.exec(query.order_by(col(Artifact.id))).all()
    return next((row for row in rows if not row.purged_at), next(iter(rows), None))


def keep(
    session: Session,
    stored: StoredFile,
    *,
    incident_id: int | None,
    actor: Actor,
    at: datetime,
    **custody: Unpack[Custody],
) -> Artifact:
    """The row of a stored file, in the caller's transaction; raises Conflict if its bytes went."""
    hold_bytes(session, stored)
    custody["name"] = shown_name(custody["name"])
    artifact = Artifact(
        incident_id=incident_id,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        taken_by=actor.name,
        taken_at=at,
        verified_at=at,
        **({"kind": NOT_RECOGNISED} | custody),
    )
    session.add(artifact)
    session.flush()
    if incident_id is not None and (incident := session.get(Incident, incident_id)):
        incident.artifact_count += 1
        incident.changed_at = at
    return artifact


def attach(
    session: Session,
    stored: StoredFile,
    *,
    incident_id: int,
    actor: Actor,
    at: datetime,
    **custody: Unpack[Custody],
) -> Artifact:
    """Add a stored file to an incident, with its lines in the timeline and the audit log."""
    artifact = keep(session, stored, incident_id=incident_id, actor=actor, at=at, **custody)
    subject = f"artifact:{artifact.id}"
    audit.note(session, actor, "artifact.attach", subject, at=at, sha256=artifact.sha256)
    attached = ArtifactAttached(
        _id(artifact), artifact.name, artifact.kind, artifact.size_bytes, artifact.sha256
    )
    timeline.record(session, attached, incident_id=incident_id, actor=actor, at=at)
    return artifact


def purge(stores: Stores, artifact_id: int, *, actor: Actor, reason: str, at: datetime) -> Artifact:
    """Remove the bytes of an artifact for good; who, when and why stays.

    The tombstone is committed first: a crash in between leaves bytes that nothing names, which
    the sweep removes. Raises NotFound, and Conflict when it is purged already.
    """
    with writing(stores.engine) as session:
        artifact = get_artifact(session, artifact_id)
        if artifact.purged_at:
            raise Conflict(f"The bytes of artifact {artifact_id} are purged already.")
        artifact.purged_at, artifact.purged_by, artifact.purge_reason = at, actor.name, reason
        subject = f"artifact:{artifact_id}"
        audit.note(session, actor, "artifact.purge", subject, at=at, reason=reason)
        dumps.forget(session, artifact)
        if artifact.incident_id is not None:
            told = ArtifactPurged(artifact_id, artifact.name, reason)
            timeline.record(session, told, incident_id=artifact.incident_id, actor=actor, at=at)
    discard(stores, artifact.sha256)
    dumps.drop_purged(stores)
    return artifact


def discard(stores: Stores, sha256: str) -> bool:
    """Delete bytes unless a row needs them; whether they were deleted."""
    with writing(stores.engine) as session:
        _lock_bytes(session, sha256)
        if _needed(session, sha256):
            return False
        stores.artifacts.delete(sha256)
        return True


def verify(stores: Stores, artifact_id: int, *, at: datetime) -> bool:
    """Read the bytes of an artifact again and note whether they still match; False if not."""
    with reading(stores.engine) as session:
        artifact = get_artifact(session, artifact_id)
    if artifact.purged_at:
        raise Conflict(f"The bytes of artifact {artifact_id} were purged on purpose.")
    whole = stores.artifacts.verify(artifact.sha256)
    _note_state(stores, artifact.sha256, whole=whole, at=at)
    return whole


def recognise(stores: Stores, stored: StoredFile) -> Bundle | None:
    """The bundle that a stored file is, made here or by incident_artifact_tool; None if it is none.

    Read under the limits of ``clients.archives``: nothing is written, run or believed.
    """
    if stored.size_bytes > MAX_ARCHIVE_BYTES:
        return None
    archive = BytesIO(stores.artifacts.read(stored.sha256, MAX_ARCHIVE_BYTES))
    try:
        return read_archive(archive, fingerprint=stores.vault.fingerprint)
    except Rejected:
        return None


def sweep(stores: Stores, *, untouched: timedelta, at: datetime) -> int:
    """Delete what a crash left behind: bytes without a row, files half spooled; how many.

    Rows of purged dumps go too.
    """
    swept = stores.artifacts.sweep_spool(untouched=untouched) + dumps.drop_purged(stores)
    for stored in stores.artifacts.listed():
        if stored.touched_at < at - untouched and discard(stores, stored.sha256):
            swept += 1
    return swept


def hold_bytes(session: Session, stored: StoredFile) -> None:
    """Make sure that the bytes are there and stay until this transaction is over."""
    _lock_bytes(session, stored.sha256)
    if not stored.store.has(stored.sha256):
        raise Conflict(
            "Equal bytes were purged in the same moment.", fix="Send the file once more."
        )


def shown_name(name: str) -> str:
    """A file's name as it may be shown: its last part, printable, of bounded length."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    printable = "".join(sign for sign in last if sign.isprintable()).strip()
    return printable[-SHOWN_NAME_LENGTH:] or "unnamed"


def _lock_bytes(session: Session, sha256: str) -> None:
    """Purging and keeping equal bytes wait for each other; SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(hashtext(:sha256))")
        session.execute(lock, {"sha256": sha256})


def _needed(session: Session, sha256: str) -> bool:
    live = select(Artifact.id).where(Artifact.sha256 == sha256, col(Artifact.purged_at).is_(None))
    capture = select(CaptureRow.name).where(CaptureRow.sha256 == sha256)
    return session.exec(live).first() is not None or session.exec(capture).first() is not None


def _note_state(stores: Stores, sha256: str, *, whole: bool, at: datetime) -> None:
    with writing(stores.engine) as session:
        for artifact in session.exec(select(Artifact).where(Artifact.sha256 == sha256)):
            if whole:
                artifact.verified_at, artifact.damaged_at = at, None
            else:
                artifact.damaged_at = artifact.damaged_at or at


def _id(artifact: Artifact) -> int:
    assert artifact.id is not None
    return artifact.id
