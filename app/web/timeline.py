"""Pages: an incident's timeline. It is only ever added to; what is read is never redrawn."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from sqlmodel import Session

from app.domain.playbook import NoteAdded
from app.errors import Malformed
from app.store import timeline
from app.store.incidents import get_incident
from app.store.tables import Incident
from app.web.acting import ActingOn
from app.web.answers import done, from_htmx
from app.web.dependencies import Now, Reader, Reading
from app.web.incident_form import TypedNote, typed_moment
from app.web.render import render
from app.web.views.timeline import WINDOW, NewerFragment, OlderFragment, Story

EventId = Annotated[int | None, Query(ge=0, lt=2**63)]

router = APIRouter(include_in_schema=False)


def _asked_story(
    incident_id: int,
    session: Reading,
    before: EventId = None,
    events: Literal["all"] | None = None,
) -> Story:
    """A window of the timeline, from *before* on; raises NotFound for an event of elsewhere."""
    return Story.of(
        get_incident(session, incident_id),
        timeline.timeline(session, incident_id, limit=WINDOW + 1, before=before),
        timeline.pins(session, incident_id),
        newest_id=timeline.newest_id(session, incident_id),
        shows_all=events == "all",
    )


AskedStory = Annotated[Story, Depends(_asked_story)]


def _current(incident_id: int, session: Reading, actor: Reader) -> Incident:
    return get_incident(session, incident_id)


Current = Annotated[Incident, Depends(_current)]


@router.get("/incidents/{incident_id:int}/timeline", name="timeline")
def timeline_fragment(
    request: Request,
    incident: Current,
    session: Reading,
    now: Now,
    after: EventId = 0,
    before: EventId = None,
) -> Response:
    """What was recorded *after* an event, or what occurred *before* it; 204 without news."""
    if not from_htmx(request):
        return done(request, request.url_for("incident", incident_id=incident.id).path)
    part = _older(session, incident, before) if before else _newer(session, incident, after or 0)
    if part is None:
        return Response(status_code=204)
    kind = OlderFragment if before else NewerFragment
    may_act = request.state.actor.role != "reader"
    return render(request, kind(incident, part, now, may_act))


def _older(session: Session, incident: Incident, before: int) -> Story:
    assert incident.id is not None
    moments = timeline.timeline(session, incident.id, limit=WINDOW + 1, before=before)
    return Story.of(incident, moments, part="older")


def _newer(session: Session, incident: Incident, after: int) -> Story | None:
    """What is new, system events too: they are folded when the page is drawn again."""
    assert incident.id is not None
    moments = timeline.timeline(session, incident.id, limit=WINDOW, after=after)
    if not moments:
        return None
    newest = max(one.id for one in moments)
    return Story.of(incident, moments, newest_id=newest, shows_all=True, part="newer")


@router.post("/incidents/{incident_id:int}/notes", name="add_note")
def add_note(acting: ActingOn, typed: Annotated[TypedNote, Form()]) -> Response:
    if not typed.text.strip():
        raise Malformed("The note is empty.")
    row = timeline.record(
        acting.session,
        NoteAdded(typed.text.strip()),
        incident_id=acting.incident_id,
        actor=acting.actor,
        at=acting.at,
        occurred_at=typed_moment(typed.occurred_at),
    )
    acting.note("incident.note", event=row.id)
    return acting.done()


@router.post("/incidents/{incident_id:int}/timeline/{event_id:int}/pin", name="pin_event")
def pin_event(acting: ActingOn, event_id: int, pinned: Annotated[bool, Form()]) -> Response:
    timeline.pin(
        acting.session,
        acting.incident_id,
        event_id,
        pinned=pinned,
        actor=acting.actor,
        at=acting.at,
    )
    acting.note("incident.pin" if pinned else "incident.unpin", event=event_id)
    return acting.done()
