"""API: recording requests at a target for a while, and keeping the exact request."""

from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.domain.recording import MAX_SECONDS, MAX_THRESHOLD, MIN_SECONDS, USUAL_SECONDS
from app.errors import Rejected
from app.store import recordings
from app.store.incidents import get_incident
from app.store.payloads import save_payload
from app.store.recordings import NewRecording, Recording, request_off, request_recording
from app.web.api.jobs import JobOut
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute

router = APIRouter(prefix="/api/v1", tags=["capture"], route_class=IdempotentRoute)


class CaptureIn(BaseModel):
    """Switch request dumping on for *duration_seconds*, or ``off``.

    ``threshold`` null: about 5 s of traffic, as the newest bundle saw it. ``folder`` null: that of
    its crash dumps where it has one. ``target_id`` null: the only target of the incident.
    """

    model_config = ConfigDict(extra="forbid")

    target_id: int | None = None
    folder: Annotated[str, Field(max_length=400)] | None = None
    threshold: Annotated[int, Field(ge=1, le=MAX_THRESHOLD)] | None = None
    duration_seconds: Annotated[float, Field(ge=MIN_SECONDS, le=MAX_SECONDS)] = USUAL_SECONDS
    off: bool = False


class CaptureOut(BaseModel):
    """A recording. ``phase`` "not known" and "still on?": it may be on."""

    model_config = ConfigDict(from_attributes=True)

    job_id: int
    incident_id: int | None
    target_id: int
    folder: str
    threshold: int
    phase: str
    until: datetime | None
    due_at: datetime | None
    says: str
    ended: bool
    may_be_on: bool


class CaptureAsked(BaseModel):
    """The job that switches it on and, at its time, off."""

    job: JobOut
    capture: CaptureOut


class CapturesOut(BaseModel):
    """The recordings of one incident, newest first."""

    items: list[CaptureOut]
    next_cursor: None = None


class PayloadIn(BaseModel):
    """One request: as a JSON object, or as text that is JSON or a curl command (never run)."""

    model_config = ConfigDict(extra="forbid")

    payload: dict[str, Any] | None = None
    text: str | None = None
    endpoint: Literal["/generate", "/v1/chat/completions", "/v1/completions", "/encode"] | None = (
        None
    )


class PayloadOut(BaseModel):
    """What was kept; ``redacted`` are JSON pointers, ``left_out`` names of headers."""

    artifact_id: int
    dump_id: int | None
    here_already: bool
    endpoint: str
    redacted: list[str]
    left_out: list[str]


@router.get("/incidents/{incident_id}/capture")
def list_captures(incident_id: int, session: Reading, actor: Reader) -> CapturesOut:
    get_incident(session, incident_id)
    found = recordings.recordings_of(session, incident_id)
    return CapturesOut(items=[CaptureOut.model_validate(one) for one in found])


@router.post("/incidents/{incident_id}/capture", status_code=202)
def capture(
    incident_id: int,
    asked: CaptureIn,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
) -> CaptureAsked:
    """409 where one is on already, and where the server is known to have no request dumps."""
    if asked.off:
        job = request_off(
            session,
            stores,
            incident_id=incident_id,
            target_id=asked.target_id,
            actor=actor,
            at=now,
        )
    else:
        target = recordings.target_of(session, incident_id, asked.target_id)
        usual = recordings.usual(session, stores, target)
        new = NewRecording(
            incident_id=incident_id,
            target_id=target.id,
            folder=asked.folder or usual.folder,
            threshold=asked.threshold or usual.suggestion.threshold,
            duration_seconds=asked.duration_seconds,
        )
        job = request_recording(session, stores, new, actor=actor, at=now)
    capture = CaptureOut.model_validate(Recording.of(job))
    return CaptureAsked(job=JobOut.model_validate(job), capture=capture)


@router.post("/incidents/{incident_id}/payloads", status_code=201)
def keep_payload(
    incident_id: int, asked: PayloadIn, stores: AppStores, actor: Operator, now: Now
) -> PayloadOut:
    """Keep the exact request of an incident; it is read like any file of recorded requests."""
    if (asked.payload is None) == (asked.text is None):
        raise Rejected("Send payload or text, one of the two.")
    text = asked.text if asked.text is not None else orjson.dumps(asked.payload).decode()
    taken, saved = save_payload(
        stores, text, asked.endpoint, incident_id=incident_id, actor=actor, at=now
    )
    return PayloadOut(
        artifact_id=taken.artifact_id,
        dump_id=taken.dump_id,
        here_already=taken.here_already,
        endpoint=saved.endpoint,
        redacted=list(saved.redacted),
        left_out=list(saved.left_out),
    )
