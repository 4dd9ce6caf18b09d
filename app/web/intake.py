"""Attaching the file of a form to an incident."""

from typing import Annotated

from fastapi import Depends, Request

from app.store import database
from app.store.attaching import Sent, Taken, take_in
from app.store.incidents import get_incident
from app.web.dependencies import AppStores, Now, Operator
from app.web.uploads import Uploaded


def _known_incident(incident_id: int, actor: Operator, stores: AppStores) -> int:
    """The number of an incident that exists, found out before a byte of the file is read."""
    with database.reading(stores.engine) as session:
        get_incident(session, incident_id)
    return incident_id


KnownIncident = Annotated[int, Depends(_known_incident)]


def _attach(
    incident_id: KnownIncident, upload: Uploaded, stores: AppStores, actor: Operator, now: Now
) -> Taken:
    came_from = f"upload from {actor.address or 'an unknown address'}"
    sent = Sent(upload.name, came_from, upload.media_type, upload.fields.get("tier", "T2"))
    return take_in(stores, upload.stored, sent, incident_id=incident_id, actor=actor, at=now)


Attached = Annotated[Taken, Depends(_attach)]


def page_of(request: Request, taken: Taken) -> str:
    """The path of the page that shows best what became of a file."""
    if taken.bundle_id:
        return request.url_for("bundle", bundle_id=taken.bundle_id).path
    if taken.dump_id:
        page = request.url_for("dump", dump_id=taken.dump_id).path
        return f"{page}?again=1" if taken.here_already else page
    return request.url_for("artifact", artifact_id=taken.artifact_id).path
