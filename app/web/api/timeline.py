"""API: the timeline of an incident: reading, adding a note, pinning."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.domain.playbook import NoteAdded
from app.store import timeline
from app.store.incidents import get_incident
from app.store.timeline import Moment, moment, pin, record
from app.web import paging
from app.web.acting import ActingOn
from app.web.api import moments
from app.web.dependencies import Reader, Reading
from app.web.idempotency import IdempotentRoute
from app.web.incident_form import NOTE_MAX_LENGTH

router = APIRouter(tags=["incidents"], route_class=IdempotentRoute)


class NoteIn(BaseModel):
    """What somebody saw or did, and when, if not now."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    text: Annotated[str, Field(min_length=1, max_length=NOTE_MAX_LENGTH)]
    occurred_at: moments.Moment | None = None


class PinIn(BaseModel):
    """Whether the event is kept in sight."""

    model_config = ConfigDict(extra="forbid")

    pinned: bool


class EventOut(BaseModel):
    """A fact about an incident. ``says`` is the sentence, ``detail`` what it was made from."""

    id: int
    kind: str
    says: str
    detail: dict[str, Any]
    actor: str
    occurred_at: datetime
    recorded_at: datetime
    system: bool
    pinned: bool

    @classmethod
    def of(cls, one: Moment) -> Self:
        return cls(
            id=one.id,
            kind=one.kind,
            says=one.says,
            detail=asdict(one.event),
            actor=one.actor,
            occurred_at=one.occurred_at,
            recorded_at=one.recorded_at,
            system=one.system,
            pinned=one.pinned,
        )


class EventsOut(BaseModel):
    """A page of a timeline, latest first."""

    items: list[EventOut]
    next_cursor: str | None


@router.get("/incidents/{incident_id}/timeline")
def read_timeline(
    incident_id: int,
    session: Reading,
    actor: Reader,
    limit: paging.Limit = 50,
    cursor: paging.Cursor = None,
) -> EventsOut:
    get_incident(session, incident_id)
    found = timeline.timeline(session, incident_id, limit=limit + 1, before=paging.number(cursor))
    more = len(found) > limit
    return EventsOut(
        items=[EventOut.of(one) for one in found[:limit]],
        next_cursor=paging.encode([found[limit - 1].id]) if more else None,
    )


@router.post("/incidents/{incident_id}/timeline", status_code=201)
def add_note(acting: ActingOn, note: NoteIn) -> EventOut:
    row = record(
        acting.session,
        NoteAdded(note.text),
        incident_id=acting.incident_id,
        actor=acting.actor,
        at=acting.at,
        occurred_at=note.occurred_at,
    )
    acting.note("incident.note", event=row.id)
    return EventOut.of(moment(row))


@router.patch("/incidents/{incident_id}/timeline/{event_id}")
def pin_event(acting: ActingOn, event_id: int, wanted: PinIn) -> EventOut:
    """Keep an event in sight, or no longer. Nothing else of an event can be changed."""
    pinned = pin(
        acting.session,
        acting.incident_id,
        event_id,
        pinned=wanted.pinned,
        actor=acting.actor,
        at=acting.at,
    )
    acting.note("incident.pin" if wanted.pinned else "incident.unpin", event=event_id)
    return EventOut.of(pinned)
