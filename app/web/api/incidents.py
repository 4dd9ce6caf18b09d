"""API: incidents and their timelines."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.domain.finder import MAX_LENGTH, read_filter
from app.errors import Malformed
from app.store.incident_list import Listing, list_incidents
from app.store.incidents import (
    Changes,
    OpenIncident,
    change_incident,
    get_incident,
    target_ids_of,
)
from app.store.tables import Incident
from app.web import paging
from app.web.acting import ActingOn
from app.web.api import timeline
from app.web.api.moments import Moment
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute
from app.web.incident_list import place_of
from app.web.opening import open_with_first_steps

router = APIRouter(prefix="/api/v1", tags=["incidents"], route_class=IdempotentRoute)
router.include_router(timeline.router)

Severity = Literal["sev1", "sev2", "sev3", "sev4"]
State = Literal["open", "acknowledged", "mitigated", "resolved"]
ProblemClassWord = Literal[
    "down/unhealthy",
    "latency/throughput",
    "wrong output",
    "hang/timeout",
    "crash",
    "commit regression",
]
Title = Annotated[str, Field(min_length=1, max_length=300)]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=40)]], Field(max_length=20)]
Person = Annotated[str, Field(max_length=64)]


class IncidentIn(BaseModel):
    """An incident to open. ``collect`` asks for a bundle of each target at once."""

    model_config = ConfigDict(extra="forbid")

    title: Title
    severity: Severity | None = None
    target_ids: Annotated[list[int], Field(max_length=100)] = []
    started_at: Moment | None = None
    tags: Tags = []
    assignee: Person | None = None
    collect: bool = False

    def as_wanted(self) -> OpenIncident:
        return OpenIncident(
            title=self.title,
            severity=self.severity,
            target_ids=tuple(self.target_ids),
            started_at=self.started_at,
            tags=tuple(self.tags),
            assignee=self.assignee,
            collect=self.collect,
        )


class IncidentChanges(BaseModel):
    """What to set; a field that is not sent stays, null clears it."""

    model_config = ConfigDict(extra="forbid")

    state: State | None = None
    severity: Severity | None = None
    assignee: Person | None = None
    tags: Tags | None = None
    title: Title | None = None
    problem_class: ProblemClassWord | None = None

    def as_changes(self) -> Changes:
        """Only what was sent; raises Malformed for null where a value is needed."""
        sent: dict[str, Any] = self.model_dump(exclude_unset=True)
        needed = ("state", "tags", "title")
        if empty := [name for name in needed if name in sent and sent[name] is None]:
            raise Malformed(f"{', '.join(empty)} cannot be null.", fix="Leave it out to keep it.")
        return cast("Changes", sent)


class IncidentOut(BaseModel):
    """An incident. ``verdict`` and ``headline`` are of its newest bundles; null: none yet."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    number: int
    title: str
    severity: str | None
    state: str
    problem_class: str | None
    problem_class_by: str | None
    assignee: str | None
    tags: list[str]
    target_ids: list[int]
    verdict: str | None
    headline: dict[str, Any] | None
    artifact_count: int
    opened_by: str
    opened_at: datetime
    started_at: datetime | None
    acknowledged_at: datetime | None
    mitigated_at: datetime | None
    resolved_at: datetime | None
    changed_at: datetime

    @classmethod
    def of(cls, incident: Incident, target_ids: Sequence[int]) -> Self:
        kept = {name: getattr(incident, name) for name in Incident.model_fields}
        return cls.model_validate({**kept, "number": incident.id, "target_ids": list(target_ids)})


class IncidentsOut(BaseModel):
    """A page of incidents, newest first; with ``state=open`` the failing ones first."""

    items: list[IncidentOut]
    next_cursor: str | None


@router.get("/incidents")
def read_incidents(
    session: Reading,
    actor: Reader,
    state: Literal["open", "unacknowledged", "mine", "resolved", "all"] = "all",
    q: Annotated[str, Query(max_length=MAX_LENGTH)] = "",
    limit: paging.Limit = 50,
    cursor: paging.Cursor = None,
) -> IncidentsOut:
    """``q`` is the filter of the page: ``class:hang target:decode sev:1 state:open words``."""
    listing = Listing(state, actor.name, read_filter(q))
    after = place_of(state, cursor or "")
    rows, place = list_incidents(session, listing, limit=limit, after=after)
    target_ids = target_ids_of(session, [row.id for row in rows if row.id is not None])
    return IncidentsOut(
        items=[IncidentOut.of(row, target_ids.get(row.id or 0, [])) for row in rows],
        next_cursor=paging.encode(place) if place else None,
    )


@router.post("/incidents", status_code=201)
def open_incident(
    session: Writing, stores: AppStores, actor: Operator, now: Now, new: IncidentIn
) -> IncidentOut:
    incident = open_with_first_steps(session, stores, new.as_wanted(), actor=actor, at=now)
    return _out(session, incident)


@router.get("/incidents/{incident_id}")
def read_incident(incident_id: int, session: Reading, actor: Reader) -> IncidentOut:
    return _out(session, get_incident(session, incident_id))


@router.patch("/incidents/{incident_id}")
def change(acting: ActingOn, changes: IncidentChanges) -> IncidentOut:
    """States only go forward; 409 for a way back, as an incident that returns is a new one."""
    change_incident(
        acting.session, acting.incident, changes.as_changes(), actor=acting.actor, at=acting.at
    )
    return _out(acting.session, acting.incident)


def _out(session: Session, incident: Incident) -> IncidentOut:
    assert incident.id is not None
    return IncidentOut.of(incident, target_ids_of(session, [incident.id]).get(incident.id, []))
