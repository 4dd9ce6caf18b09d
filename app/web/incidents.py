"""Pages: opening, reading and changing an incident."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response

from app.domain.claims import ProblemClass
from app.store.incidents import SEVERITIES, Changes, get_incident
from app.store.targets import list_targets
from app.web import incident_list, timeline
from app.web.acting import ActingOn
from app.web.answers import done
from app.web.dependencies import AppShell, AppStores, Now, Operator, Reader, Reading, Writing
from app.web.incident_form import TypedFacts, TypedIncident
from app.web.incident_page import incident_page
from app.web.opening import open_with_first_steps
from app.web.render import render
from app.web.timeline import AskedStory
from app.web.views.incidents import EditIncidentPage, NewIncidentPage

router = APIRouter(include_in_schema=False)
router.include_router(incident_list.router)
router.include_router(timeline.router)


@router.get("/incidents/new", name="new_incident")
def new_incident_page(
    request: Request,
    shell: AppShell,
    actor: Operator,
    session: Reading,
    target: Annotated[list[int] | None, Query()] = None,
) -> Response:
    targets = list_targets(session)
    return render(request, NewIncidentPage(shell=shell, targets=targets, chosen=target or []))


@router.post("/incidents/new", name="open_incident")
def open_incident(
    request: Request,
    actor: Operator,
    session: Writing,
    stores: AppStores,
    now: Now,
    typed: Annotated[TypedIncident, Form()],
) -> Response:
    wanted = typed.as_wanted()
    incident = open_with_first_steps(session, stores, wanted, actor=actor, at=now)
    return done(request, request.url_for("incident", incident_id=incident.id).path)


@router.get("/incidents/{incident_id:int}", name="incident")
def show_incident(
    request: Request,
    shell: AppShell,
    actor: Reader,
    session: Reading,
    story: AskedStory,
    server: Annotated[str | None, Query(max_length=80)] = None,
) -> Response:
    return render(request, incident_page(session, shell, story, server))


@router.get("/incidents/{incident_id:int}/edit", name="edit_incident")
def edit_incident_page(
    request: Request, shell: AppShell, actor: Operator, incident_id: int, session: Reading
) -> Response:
    page = EditIncidentPage(
        shell=shell,
        incident=get_incident(session, incident_id),
        severities=SEVERITIES,
        problem_classes=[one.value for one in ProblemClass],
    )
    return render(request, page)


@router.post("/incidents/{incident_id:int}/edit", name="change_incident")
def change_facts(acting: ActingOn, typed: Annotated[TypedFacts, Form()]) -> Response:
    return acting.change(typed.as_changes(acting.incident))


@router.post("/incidents/{incident_id:int}/state", name="set_state")
def set_state(acting: ActingOn, state: Annotated[str, Form(max_length=20)]) -> Response:
    return acting.change(Changes(state=state))


@router.post("/incidents/{incident_id:int}/take", name="take_incident")
def take_incident(acting: ActingOn) -> Response:
    """Acknowledge, and be the one who is on it where nobody is."""
    changes = Changes(state="acknowledged")
    if not acting.incident.assignee:
        changes["assignee"] = acting.actor.name
    return acting.change(changes)
