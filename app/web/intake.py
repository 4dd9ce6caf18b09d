"""Attaching a file to an incident: stored first, then recognised, then spoken of."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from app.errors import Rejected
from app.store import database
from app.store.evidence import attach, recognise
from app.store.incidents import get_incident
from app.store.landing import import_bundle
from app.web.dependencies import AppStores, Now, Operator
from app.web.uploads import Uploaded

TIERS = ("T0", "T1", "T2")


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of an uploaded file. ``bundle_id`` None: it is no bundle that we know."""

    artifact_id: int
    bundle_id: int | None


def _known_incident(incident_id: int, actor: Operator, stores: AppStores) -> int:
    """The number of an incident that exists, found out before a byte of the file is read."""
    with database.reading(stores.engine) as session:
        get_incident(session, incident_id)
    return incident_id


def _attach(
    incident_id: Annotated[int, Depends(_known_incident)],
    upload: Uploaded,
    stores: AppStores,
    actor: Operator,
    now: Now,
) -> Taken:
    came_from = f"upload from {actor.address or 'an unknown address'}"
    if bundle := recognise(stores, upload.stored):
        row = import_bundle(
            stores,
            bundle,
            upload.stored,
            incident_id=incident_id,
            name=upload.name,
            taken_from=came_from,
            actor=actor,
            at=now,
        )
        assert row.artifact_id is not None
        return Taken(row.artifact_id, row.id)
    tier = upload.fields.get("tier", "T2")
    if tier not in TIERS:
        raise Rejected(f"There is no tier {tier[:20]}.", fix="Use T0, T1 or T2.")
    with database.writing(stores.engine) as session:
        artifact = attach(
            session,
            upload.stored,
            incident_id=incident_id,
            name=upload.name,
            media_type=upload.media_type,
            tier=tier,
            taken_from=came_from,
            actor=actor,
            at=now,
        )
    assert artifact.id is not None
    return Taken(artifact.id, None)


Attached = Annotated[Taken, Depends(_attach)]
