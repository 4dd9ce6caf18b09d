"""A file that reached an incident: recognised by what is in it, then spoken of.

The bytes are stored before. A bundle is opened at once, a dump is read by a job, anything else
is kept as it is.
"""

from dataclasses import dataclass
from datetime import datetime

from app.domain.dump_recognition import HEAD_BYTES, is_recorded
from app.errors import Rejected
from app.store import audit, dumps, evidence
from app.store.artifacts import StoredFile
from app.store.audit import Actor
from app.store.bundles import bundle_of_artifact
from app.store.database import reading, writing
from app.store.evidence import attach, recognise
from app.store.landing import import_bundle
from app.store.stores import Stores

TIERS = ("T0", "T1", "T2")


@dataclass(frozen=True, slots=True)
class Sent:
    """What came with a file, in the words of its sender."""

    name: str
    came_from: str  # "upload from 10.0.0.5"
    media_type: str = "application/octet-stream"
    tier: str = "T2"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a file. *here_already*: equal bytes are on the incident as this artifact."""

    artifact_id: int
    bundle_id: int | None = None
    dump_id: int | None = None
    here_already: bool = False


def take_in(
    stores: Stores, stored: StoredFile, sent: Sent, *, incident_id: int, actor: Actor, at: datetime
) -> Taken:
    """Attach a stored file to an incident as what it is."""
    check_tier(sent.tier)
    if taken := _as_bundle(stores, stored, sent, incident_id=incident_id, actor=actor, at=at):
        return taken
    head = b"".join(stores.artifacts.stream(stored.sha256, 0, HEAD_BYTES))
    if is_recorded(head, sent.name):
        return _as_dump(stores, stored, sent, incident_id=incident_id, actor=actor, at=at)
    with writing(stores.engine) as session:
        artifact = attach(
            session,
            stored,
            incident_id=incident_id,
            name=sent.name,
            media_type=sent.media_type,
            tier=sent.tier,
            taken_from=sent.came_from,
            actor=actor,
            at=at,
        )
    assert artifact.id is not None
    return Taken(artifact.id)


def known(stores: Stores, artifact_id: int) -> Taken:
    """What became of the file that is that artifact."""
    with reading(stores.engine) as session:
        dump = dumps.dump_of_artifact(session, artifact_id)
        bundle_id = bundle_of_artifact(session, artifact_id)
    return Taken(artifact_id, bundle_id, dump.id if dump else None)


def check_tier(tier: str) -> None:
    """Raises Rejected for a word that is no tier."""
    if tier not in TIERS:
        raise Rejected(f"There is no tier {tier[:20]}.", fix="Use T0, T1 or T2.")


def _as_bundle(
    stores: Stores, stored: StoredFile, sent: Sent, *, incident_id: int, actor: Actor, at: datetime
) -> Taken | None:
    bundle = recognise(stores, stored)
    if bundle is None:
        return None
    row = import_bundle(
        stores,
        bundle,
        stored,
        incident_id=incident_id,
        name=sent.name,
        taken_from=sent.came_from,
        actor=actor,
        at=at,
    )
    assert row.artifact_id is not None
    return Taken(row.artifact_id, bundle_id=row.id)


def _as_dump(
    stores: Stores, stored: StoredFile, sent: Sent, *, incident_id: int, actor: Actor, at: datetime
) -> Taken:
    """Raw whatever its sender says: it holds prompts."""
    with writing(stores.engine) as session:
        evidence.hold_bytes(session, stored)  # two that send equal bytes wait for each other
        if known := dumps.known_dump(session, incident_id, stored.sha256):
            subject = f"artifact:{known.artifact_id}"
            audit.note(session, actor, "artifact.again", subject, at=at, sha256=stored.sha256)
            return Taken(known.artifact_id, dump_id=known.id, here_already=True)
        artifact = attach(
            session,
            stored,
            incident_id=incident_id,
            name=sent.name,
            kind=dumps.KIND,
            media_type=sent.media_type,
            taken_from=sent.came_from,
            actor=actor,
            at=at,
        )
        _, dump = dumps.request_ingest(session, stores.outbox, artifact, actor=actor, at=at)
    assert artifact.id is not None
    return Taken(artifact.id, dump_id=dump.id)
