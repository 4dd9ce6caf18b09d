"""Pages: recording requests at a target for a while, and keeping the exact request."""

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel, Field
from sqlmodel import Session

from app.domain import recording as words
from app.errors import Conflict
from app.store import recordings
from app.store.incidents import get_incident, targets_of
from app.store.payloads import save_payload
from app.store.recordings import NewRecording, request_off, request_recording
from app.store.stores import Stores
from app.store.tables import Target
from app.web.acting import ActingOn
from app.web.answers import done
from app.web.candidates import candidates
from app.web.dependencies import AppShell, AppStores, Now, Operator, Reader, Reading
from app.web.render import render
from app.web.views.recordings import (
    PayloadPage,
    Proposed,
    RecordingPage,
    RecordingsPart,
    RecordingTold,
)

SHOWN = 3
Minutes = Annotated[int, Field(ge=1, le=words.MAX_SECONDS // 60)]
Threshold = Annotated[int, Field(ge=1, le=words.MAX_THRESHOLD)]

router = APIRouter(include_in_schema=False)


class Asked(BaseModel):
    """What the form proposes so far; what is absent is proposed by us."""

    target_id: int | None = None
    folder: Annotated[str, Field(max_length=400)] | None = None
    threshold: Threshold | None = None
    minutes: Minutes = words.USUAL_SECONDS // 60


class TypedRecording(BaseModel):
    """What was shown, and the name of the target as its confirmation."""

    target_id: int
    folder: Annotated[str, Field(max_length=400)]
    threshold: Threshold
    minutes: Minutes
    confirm: Annotated[str, Field(max_length=200)] = ""


def recordings_told(session: Session, incident_id: int) -> list[RecordingTold]:
    """The newest recordings of an incident, and each that may still be on."""
    found = recordings.recordings_of(session, incident_id)
    shown = [one for number, one in enumerate(found) if number < SHOWN or one.may_be_on]
    targets = {one.id: one for one in targets_of(session, incident_id)}
    linked = candidates(session, [one for one in targets.values() if one.deleted_at is None])
    keys = {one.target.id: one.key for one in linked}
    return [
        RecordingTold.of(one, targets[one.target_id], keys.get(one.target_id))
        for one in shown
        if one.target_id in targets
    ]


def recording_told(session: Session, target: Target) -> RecordingTold | None:
    """What may be on at a target now."""
    current = recordings.recording_at(session, target)
    return RecordingTold.of(current, target) if current and current.folder else None


@router.get("/incidents/{incident_id:int}/recordings", name="recordings")
def show_recordings(
    request: Request,
    incident_id: int,
    session: Reading,
    actor: Reader,
    shell: AppShell,
) -> Response:
    part = RecordingsPart(
        incident=get_incident(session, incident_id),
        recordings=recordings_told(session, incident_id),
        may_act=shell.may_act,
        now=shell.now,
    )
    return render(request, part)


@router.get("/incidents/{incident_id:int}/recording", name="recording_form")
def recording_form(  # noqa: PLR0913  (what it needs is asked for by name)
    request: Request,
    *,
    incident_id: int,
    session: Reading,
    stores: AppStores,
    actor: Operator,
    shell: AppShell,
    asked: Annotated[Asked, Query()],
) -> Response:
    """Nothing is sent by looking at it."""
    targets = [one for one in targets_of(session, incident_id) if one.deleted_at is None]
    chosen = asked.target_id or (targets[0].id if targets else None)
    target = recordings.target_of(session, incident_id, chosen)
    page = RecordingPage(
        shell=shell,
        incident=get_incident(session, incident_id),
        targets=targets,
        target=target,
        proposed=_proposed(session, stores, target, asked, shell.now),
        current=recording_told(session, target),
        now=shell.now,
    )
    return render(request, page)


def _proposed(
    session: Session, stores: Stores, target: Target, asked: Asked, now: datetime
) -> Proposed:
    usual = recordings.usual(session, stores, target)
    folder = words.check_folder(asked.folder or usual.folder)
    threshold = asked.threshold or usual.suggestion.threshold
    refused = words.refusal(usual.known)
    return Proposed(
        url=f"{target.base_url}{words.PATH}",
        on=words.body_on(folder, threshold).decode(),
        off=words.body_off().decode(),
        folder=folder,
        threshold=threshold,
        minutes=asked.minutes,
        until=now + timedelta(minutes=asked.minutes),
        why=usual.suggestion.why,
        suggested=usual.suggestion.threshold,
        doubts=words.doubts(usual.known, admin_token=target.admin_token_sealed is not None),
        refused=refused.says if refused else None,
        fix=refused.fix if refused else "",
    )


@router.post("/incidents/{incident_id:int}/recording", name="record_requests")
def record(
    acting: ActingOn, stores: AppStores, typed: Annotated[TypedRecording, Form()]
) -> Response:
    target = recordings.target_of(acting.session, acting.incident_id, typed.target_id)
    if typed.confirm.strip() != target.name:
        raise Conflict(
            f"This would change how {target.name} logs its requests.",
            fix=f"Type the name of the target to go on: {target.name}.",
        )
    new = NewRecording(
        incident_id=acting.incident_id,
        target_id=typed.target_id,
        folder=typed.folder,
        threshold=typed.threshold,
        duration_seconds=typed.minutes * 60.0,
    )
    request_recording(acting.session, stores, new, actor=acting.actor, at=acting.at)
    return _to_recordings(acting)


@router.post("/incidents/{incident_id:int}/recording/off", name="stop_recording")
def stop(
    acting: ActingOn, stores: AppStores, target_id: Annotated[int | None, Form()] = None
) -> Response:
    request_off(
        acting.session,
        stores,
        incident_id=acting.incident_id,
        target_id=target_id,
        actor=acting.actor,
        at=acting.at,
    )
    return _to_recordings(acting)


def _to_recordings(acting: ActingOn) -> Response:
    page = acting.request.url_for("incident", incident_id=acting.incident_id).path
    return done(acting.request, f"{page}#recordings")


@router.get("/incidents/{incident_id:int}/payload", name="payload_form")
def payload_form(
    request: Request, incident_id: int, session: Reading, actor: Operator, shell: AppShell
) -> Response:
    return render(request, PayloadPage(shell=shell, incident=get_incident(session, incident_id)))


@router.post("/incidents/{incident_id:int}/payload", name="save_payload")
def keep_payload(  # noqa: PLR0913
    request: Request,
    *,
    incident_id: int,
    stores: AppStores,
    actor: Operator,
    now: Now,
    text: Annotated[str, Form()],
    endpoint: Annotated[str, Form(max_length=40)] = "",
) -> Response:
    taken, _ = save_payload(
        stores, text, endpoint or None, incident_id=incident_id, actor=actor, at=now
    )
    page = request.url_for("artifact", artifact_id=taken.artifact_id).path
    return done(request, page)
