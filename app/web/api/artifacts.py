"""API: artifacts: attaching, reading, downloading and purging them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Header, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.store import database
from app.store.bundles import bundle_of_artifact
from app.store.dumps import dump_of_artifact
from app.store.evidence import artifacts_of, get_artifact, purge, verify
from app.store.incidents import get_incident
from app.store.stores import Stores
from app.store.tables import Artifact
from app.web.artifacts import opened
from app.web.dependencies import Admin, AppStores, Now, Operator, Reader, Reading
from app.web.idempotency import IdempotentRoute
from app.web.intake import Attached

router = APIRouter(prefix="/api/v1", tags=["artifacts"], route_class=IdempotentRoute)


class ArtifactOut(BaseModel):
    """A stored file and its custody. ``purged_at`` set: only this record is left."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    incident_id: int | None
    bundle_id: int | None = None
    dump_id: int | None = None
    kind: str
    name: str
    sha256: str
    size_bytes: int
    media_type: str
    tier: str
    taken_by: str
    taken_at: datetime
    taken_from: str
    covers_from: datetime | None
    covers_to: datetime | None
    verified_at: datetime | None
    damaged_at: datetime | None
    purged_at: datetime | None
    purged_by: str | None
    purge_reason: str | None

    @classmethod
    def of(cls, session: Session, artifact: Artifact) -> "ArtifactOut":
        """*artifact* with what was made of it."""
        assert artifact.id is not None
        dump = dump_of_artifact(session, artifact.id)
        made = {
            "bundle_id": bundle_of_artifact(session, artifact.id),
            "dump_id": dump.id if dump else None,
        }
        return cls.model_validate(artifact).model_copy(update=made)


class ArtifactsOut(BaseModel):
    """The artifacts of one incident, newest first."""

    items: list[ArtifactOut]
    next_cursor: None = None


class PurgeIn(BaseModel):
    """Why the bytes have to go; kept in the record."""

    reason: str = Field(min_length=3, max_length=300)


@router.get("/incidents/{incident_id}/artifacts")
def list_artifacts(incident_id: int, session: Reading, actor: Reader) -> ArtifactsOut:
    get_incident(session, incident_id)
    found = artifacts_of(session, incident_id)
    return ArtifactsOut(items=[ArtifactOut.model_validate(artifact) for artifact in found])


@router.post("/incidents/{incident_id}/artifacts", status_code=201)
def attach_artifact(attached: Attached, session: Reading, response: Response) -> ArtifactOut:
    """Keep the multipart field ``file``. Bundles and dumps are recognised by what is in them.

    A dump is read by a job. 200 instead of 201: these bytes are on the incident already.
    """
    if attached.here_already:
        response.status_code = 200
    return ArtifactOut.of(session, get_artifact(session, attached.artifact_id))


@router.get("/artifacts/{artifact_id}")
def read_artifact(artifact_id: int, session: Reading, actor: Reader) -> ArtifactOut:
    return ArtifactOut.of(session, get_artifact(session, artifact_id))


@router.get("/artifacts/{artifact_id}/content", response_class=Response)
def read_content(
    artifact_id: int,
    stores: AppStores,
    actor: Reader,
    now: Now,
    span: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header()] = None,
) -> Response:
    """The bytes, as an attachment; one range may be asked for. T2 needs an operator."""
    return opened(stores, artifact_id, actor=actor, now=now, span=span, fresh=if_range)


@router.post("/artifacts/{artifact_id}/verify")
def verify_artifact(artifact_id: int, stores: AppStores, actor: Operator, now: Now) -> ArtifactOut:
    """Compare the stored bytes with their hash, and note how that went."""
    verify(stores, artifact_id, at=now)
    return _read_again(stores, artifact_id)


@router.post("/artifacts/{artifact_id}/purge")
def purge_artifact(
    artifact_id: int, asked: PurgeIn, stores: AppStores, actor: Admin, now: Now
) -> ArtifactOut:
    """Remove the bytes for good; the record stays with the reason."""
    purge(stores, artifact_id, actor=actor, reason=asked.reason, at=now)
    return _read_again(stores, artifact_id)


def _read_again(stores: Stores, artifact_id: int) -> ArtifactOut:
    with database.reading(stores.engine) as session:
        return ArtifactOut.of(session, get_artifact(session, artifact_id))
