"""Asking for a bundle of a target, from a page and from a program alike."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from app.domain.playbook import Probe
from app.errors import Conflict, NotFound, Rejected
from app.store.audit import Actor
from app.store.bundles import request_bundle
from app.store.incidents import get_incident, targets_of
from app.store.stores import Stores
from app.store.tables import BundleRow, Job, Target

SHORTEST_SECONDS, LONGEST_SECONDS = 1, 300  # between the two scrapes


def collect(  # noqa: PLR0913
    session: Session,
    stores: Stores,
    incident_id: int,
    *,
    target_id: int | None,
    probe: Probe,
    interval_seconds: float,
    actor: Actor,
    at: datetime,
) -> tuple[Job, BundleRow]:
    """The job and the bundle that it will fill, in the caller's transaction.

    *target_id* None: the only target of the incident. Raises NotFound, and Rejected where the
    incident has none or several.
    """
    incident = get_incident(session, incident_id)
    target = _target(session, incident_id, target_id)
    if target.deleted_at:
        raise Conflict(f"{target.name} is deleted.", fix="Register it again.")
    return request_bundle(
        session,
        stores,
        incident_id=incident.id,
        target=target,
        probe=probe,
        interval_seconds=interval_seconds,
        actor=actor,
        at=at,
    )


def _target(session: Session, incident_id: int, target_id: int | None) -> Target:
    targets = targets_of(session, incident_id)
    if target_id is not None:
        found = next((target for target in targets if target.id == target_id), None)
        if found is None:
            raise NotFound(
                f"Incident {incident_id} is not about target {target_id}.",
                fix=f"Its targets: {_names(targets)}.",
            )
        return found
    if len(targets) != 1:
        raise Rejected(
            f"Incident {incident_id} is about {len(targets)} targets: which one is not said.",
            fix=f"Send target_id. Its targets: {_names(targets)}.",
        )
    return targets[0]


def _names(targets: Sequence[Target]) -> str:
    return ", ".join(f"{target.id} ({target.name})" for target in targets) or "none"
