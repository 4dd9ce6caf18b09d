"""Opening an incident and asking for its first steps, for the page and the API alike."""

from datetime import datetime

from sqlmodel import Session

from app.domain.playbook import next_steps
from app.store.audit import Actor
from app.store.bundles import request_bundle
from app.store.incidents import OpenIncident, open_incident
from app.store.stores import Stores
from app.store.tables import Incident
from app.store.targets import get_target


def open_with_first_steps(
    session: Session, stores: Stores, wanted: OpenIncident, *, actor: Actor, at: datetime
) -> Incident:
    """The new incident; the jobs it calls for are queued in the same transaction."""
    incident = open_incident(session, wanted, actor=actor, at=at)
    assert incident.id is not None
    for step in next_steps(wanted.event):
        request_bundle(
            session,
            stores,
            incident_id=incident.id,
            target=get_target(session, step.target_id),
            probe=step.probe,
            interval_seconds=step.interval_seconds,
            actor=actor,
            at=at,
        )
    return incident
