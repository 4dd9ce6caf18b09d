"""The exact request of an incident, pasted by a person: kept as a file of recorded requests."""

from datetime import datetime

from app.domain.payload import SavedRequest, saved_request
from app.store.attaching import Sent, Taken, take_in
from app.store.audit import Actor
from app.store.database import reading
from app.store.incidents import get_incident, targets_of
from app.store.stores import Stores
from app.store.targets import address

MEDIA_TYPE = "application/x-ndjson"


def save_payload(
    stores: Stores, text: str, endpoint: str | None, *, incident_id: int, actor: Actor, at: datetime
) -> tuple[Taken, SavedRequest]:
    """What became of *text*; raises NotFound, Malformed and Rejected."""
    with reading(stores.engine) as session:
        get_incident(session, incident_id)
        targets = [one for one in targets_of(session, incident_id) if one.deleted_at is None]
    keys = {key for one in targets for key in address(one, stores.vault, stores.settings).secrets}
    saved = saved_request(
        text, fingerprint=stores.vault.fingerprint, endpoint=endpoint, secrets=tuple(sorted(keys))
    )
    sent = Sent(
        name=f"request-{at:%Y%m%dT%H%M%SZ}.jsonl",
        came_from=f"pasted by {actor.name}",
        media_type=MEDIA_TYPE,
        tier="T2",
    )
    stored = stores.artifacts.put(saved.line)
    taken = take_in(stores, stored, sent, incident_id=incident_id, actor=actor, at=at)
    return taken, saved
