"""Writing and reading the timelines of incidents."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import get_args

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, and_, or_
from sqlmodel import Session, col, func, select

from app.domain import timeline as words
from app.domain.playbook import Event
from app.errors import NotFound
from app.store.audit import Actor
from app.store.tables import Incident, TimelineEvent

MOST_PINS = 20  # shown; a timeline where more is pinned has nothing in sight

_READERS: dict[str, TypeAdapter[Event]] = {
    kind.__name__: TypeAdapter(kind) for kind in get_args(Event)
}


@dataclass(frozen=True, slots=True)
class Moment:
    """An event with its time, as a page or a program reads it."""

    id: int
    kind: str
    event: Event
    actor: str
    occurred_at: datetime
    recorded_at: datetime
    system: bool
    pinned: bool

    @property
    def says(self) -> str:
        return words.told(self.event)

    @property
    def link(self) -> words.Link | None:
        return words.link(self.event)


def record(
    session: Session,
    event: Event,
    *,
    incident_id: int,
    actor: Actor,
    at: datetime,
    occurred_at: datetime | None = None,
) -> TimelineEvent:
    """Add *event* to an incident's timeline, in the caller's transaction."""
    row = TimelineEvent(
        incident_id=incident_id,
        kind=type(event).__name__,
        detail=asdict(event),
        actor=actor.name,
        occurred_at=occurred_at or at,
        recorded_at=at,
        system=isinstance(event, words.SYSTEM),
    )
    session.add(row)
    if incident := session.get(Incident, incident_id):
        incident.changed_at = at
    session.flush()
    return row


def moment(row: TimelineEvent) -> Moment:
    """A row as it is read."""
    assert row.id is not None
    return Moment(
        id=row.id,
        kind=row.kind,
        event=_READERS[row.kind].validate_python(row.detail),
        actor=row.actor,
        occurred_at=row.occurred_at,
        recorded_at=row.recorded_at,
        system=row.system,
        pinned=row.pinned_at is not None,
    )


def timeline(
    session: Session,
    incident_id: int,
    *,
    limit: int = 200,
    after: int | None = None,
    before: int | None = None,
) -> Sequence[Moment]:
    """Moments of an incident, latest first.

    *after* is the event recorded last that is known already; *before* is the earliest event
    shown so far, which may have been told late. Raises NotFound for an unknown *before*.
    """
    query = select(TimelineEvent).where(TimelineEvent.incident_id == incident_id)
    if after is not None:
        query = query.where(col(TimelineEvent.id) > after)
    if before is not None:
        query = query.where(_earlier(_event(session, incident_id, before)))
    newest = query.order_by(col(TimelineEvent.occurred_at).desc(), col(TimelineEvent.id).desc())
    return [moment(row) for row in session.exec(newest.limit(limit))]


def pins(session: Session, incident_id: int) -> Sequence[Moment]:
    """The moments to keep in sight, latest first."""
    query = select(TimelineEvent).where(
        TimelineEvent.incident_id == incident_id, col(TimelineEvent.pinned_at).is_not(None)
    )
    newest = query.order_by(col(TimelineEvent.occurred_at).desc(), col(TimelineEvent.id).desc())
    return [moment(row) for row in session.exec(newest.limit(MOST_PINS))]


def newest_id(session: Session, incident_id: int) -> int:
    """The number of the event that was recorded last; 0 without any."""
    query = select(func.max(TimelineEvent.id)).where(TimelineEvent.incident_id == incident_id)
    return session.exec(query).one() or 0


def pin(
    session: Session, incident_id: int, event_id: int, *, pinned: bool, actor: Actor, at: datetime
) -> Moment:
    """Mark an event as one to keep in sight, or take the mark away; raises NotFound."""
    row = _event(session, incident_id, event_id)
    row.pinned_at, row.pinned_by = (at, actor.name) if pinned else (None, None)
    return moment(row)


def _event(session: Session, incident_id: int, event_id: int) -> TimelineEvent:
    row = session.get(TimelineEvent, event_id)
    if row is None or row.incident_id != incident_id:
        raise NotFound(f"Incident {incident_id} has no event {event_id}.")
    return row


def _earlier(row: TimelineEvent) -> ColumnElement[bool]:
    occurred = col(TimelineEvent.occurred_at)
    return or_(
        occurred < row.occurred_at,
        and_(occurred == row.occurred_at, col(TimelineEvent.id) < row.id),
    )
