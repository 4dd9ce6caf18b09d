"""API: diagnostics: asking for evidence from hosts, and reading what came."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.domain.playbook import DiagnosticKind
from app.protocol.messages import MAX_INTERVAL_SECONDS, MAX_PROCESSES, MAX_SAMPLES, ProcessId
from app.store.diagnostics import (
    NewDiagnostic,
    diagnostics_of,
    get_diagnostic,
    items_of,
    request_diagnostic,
)
from app.store.incidents import get_incident
from app.store.same_faults import same_as
from app.web.api.jobs import JobOut
from app.web.api.same_faults import SameFaultOut
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute

router = APIRouter(prefix="/api/v1", tags=["diagnostics"], route_class=IdempotentRoute)


class DiagnosticIn(BaseModel):
    """What to take of whom. ``schedulers``: the ranks of one server, on all its hosts.

    ``confirm``, for a coredump: the name of each host, with commas in between.
    """

    model_config = ConfigDict(extra="forbid")

    kind: DiagnosticKind
    target_id: int | None = None
    host_ids: Annotated[list[int], Field(max_length=256)] = []
    process_ids: (
        Annotated[list[ProcessId], Field(min_length=1, max_length=MAX_PROCESSES)]
        | Literal["schedulers"]
    ) = "schedulers"
    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] = 1
    interval_seconds: Annotated[float, Field(ge=0.5, le=MAX_INTERVAL_SECONDS)] = 5.0
    confirm: Annotated[str, Field(max_length=4096)] | None = None


class ItemOut(BaseModel):
    """What was taken of one process or host at one moment, or why not."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    host_id: int | None
    host_name: str
    process_id: str | None
    pid: int | None
    rank: str | None
    sample: int | None
    taken_at: datetime | None
    seconds: float | None
    mode: str | None
    exact: bool | None
    artifact_id: int | None
    state: str
    kind: str
    says: str
    fix: str | None
    command: str | None
    detail: dict[str, Any]
    fingerprint: str | None


class DiagnosticOut(BaseModel):
    """A diagnostic without what it brought."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    incident_id: int
    target_id: int | None
    job_id: int
    kind: str
    state: str
    says: str
    asked_by: str
    asked_at: datetime
    finished_at: datetime | None
    hosts: list[dict[str, Any]]
    answer: dict[str, Any] | None


class DiagnosticWithItems(DiagnosticOut):
    """A diagnostic and what it brought, as far as it has come."""

    items: list[ItemOut] = []
    same_faults: list[SameFaultOut] = []


class DiagnosticsOut(BaseModel):
    """The diagnostics of one incident, newest first."""

    items: list[DiagnosticOut]
    next_cursor: None = None


class NamedDiagnostic(BaseModel):
    """The diagnostic that a job fills."""

    id: int


class AskedOut(BaseModel):
    """Work that was asked for."""

    job: JobOut
    diagnostic: NamedDiagnostic


@router.get("/incidents/{incident_id}/diagnostics")
def list_diagnostics(incident_id: int, session: Reading, actor: Reader) -> DiagnosticsOut:
    get_incident(session, incident_id)
    found = diagnostics_of(session, incident_id)
    return DiagnosticsOut(items=[DiagnosticOut.model_validate(row) for row in found])


@router.post("/incidents/{incident_id}/diagnostics", status_code=202)
def ask(
    incident_id: int,
    asked: DiagnosticIn,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
) -> AskedOut:
    """409 where it is not clear which server is meant, or where a coredump is not confirmed."""
    new = NewDiagnostic(incident_id=incident_id, **asked.model_dump())
    job, row = request_diagnostic(session, stores, new, actor=actor, at=now)
    assert row.id is not None
    return AskedOut(job=JobOut.model_validate(job), diagnostic=NamedDiagnostic(id=row.id))


@router.get("/diagnostics/{diagnostic_id}")
def read_diagnostic(diagnostic_id: int, session: Reading, actor: Reader) -> DiagnosticWithItems:
    diagnostic = DiagnosticWithItems.model_validate(get_diagnostic(session, diagnostic_id))
    items = items_of(session, diagnostic_id)
    diagnostic.items = [ItemOut.model_validate(item) for item in items]
    known = [item.fingerprint for item in items if item.fingerprint]
    diagnostic.same_faults = [
        SameFaultOut.model_validate(one.as_json())
        for one in same_as(session, diagnostic.incident_id, known)
    ]
    return diagnostic
