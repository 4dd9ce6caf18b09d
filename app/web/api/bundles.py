"""API: bundles: asking for them, reading, summary, and what changed between two."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.domain.playbook import Probe
from app.errors import Conflict
from app.store.bundles import bundles_of, captures_of, get_bundle
from app.store.incidents import get_incident
from app.web.api.jobs import JobOut
from app.web.bundle_page import changes, in_order
from app.web.collecting import LONGEST_SECONDS, SHORTEST_SECONDS, collect
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute

router = APIRouter(prefix="/api/v1", tags=["bundles"], route_class=IdempotentRoute)


class CollectIn(BaseModel):
    """What to collect. ``target_id`` may be left out where the incident has one target."""

    model_config = ConfigDict(extra="forbid")

    target_id: int | None = None
    probe: Probe = "auto"
    interval_seconds: float = Field(default=10.0, ge=SHORTEST_SECONDS, le=LONGEST_SECONDS)


class CaptureOut(BaseModel):
    """How asking one endpoint ended. ``seconds`` null: it was not asked."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    path: str
    outcome: str
    status: int | None
    started_at: datetime | None
    seconds: float | None
    size_bytes: int
    sha256: str | None
    detail: str
    redacted: list[str]


class BundleOut(BaseModel):
    """A bundle without its summary. ``verdict`` null: it is not whole yet."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    incident_id: int | None
    target_id: int | None
    job_id: int | None
    artifact_id: int | None
    base_url: str
    state: str
    probe: str
    interval_seconds: float
    collected_at: datetime
    finished_at: datetime | None
    verdict: str | None
    version: str | None
    made_by: str


class BundleWithCaptures(BundleOut):
    """A bundle and how asking each endpoint ended, as far as it has come."""

    captures: list[CaptureOut] = []


class BundlesOut(BaseModel):
    """The bundles of one incident, newest first."""

    items: list[BundleOut]
    next_cursor: None = None


class NamedBundle(BaseModel):
    """The bundle that a job fills."""

    id: int


class CollectingOut(BaseModel):
    """Work that was asked for."""

    job: JobOut
    bundle: NamedBundle


class DiffOut(BaseModel):
    """What changed from the earlier of two bundles to the later one, most suspect first."""

    before: dict[str, Any]
    after: dict[str, Any]
    alike: int
    not_compared: list[str]
    changes: list[dict[str, Any]]
    low_suspicion: list[dict[str, Any]]
    volatile: list[dict[str, Any]]


@router.get("/incidents/{incident_id}/bundles")
def list_bundles(incident_id: int, session: Reading, actor: Reader) -> BundlesOut:
    get_incident(session, incident_id)
    found = bundles_of(session, incident_id)
    return BundlesOut(items=[BundleOut.model_validate(row) for row in found])


@router.post("/incidents/{incident_id}/bundles", status_code=202)
def collect_bundle(
    incident_id: int,
    asked: CollectIn,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
) -> CollectingOut:
    """Ask a target's read-only endpoints once and its metrics twice. ``probe`` as the CLI's."""
    job, row = collect(
        session,
        stores,
        incident_id,
        target_id=asked.target_id,
        probe=asked.probe,
        interval_seconds=asked.interval_seconds,
        actor=actor,
        at=now,
    )
    assert row.id is not None
    return CollectingOut(job=JobOut.model_validate(job), bundle=NamedBundle(id=row.id))


@router.get("/bundles/{bundle_id}")
def read_bundle(bundle_id: int, session: Reading, actor: Reader) -> BundleWithCaptures:
    bundle = BundleWithCaptures.model_validate(get_bundle(session, bundle_id))
    captures = captures_of(session, bundle_id)
    bundle.captures = [CaptureOut.model_validate(capture) for capture in captures]
    return bundle


@router.get("/bundles/{bundle_id}/summary")
def read_summary(bundle_id: int, session: Reading, actor: Reader) -> dict[str, Any]:
    """The document of ``bundle summarize --json``; a conflict while it is not whole."""
    row = get_bundle(session, bundle_id)
    if row.summary is None:
        raise Conflict(f"Bundle {bundle_id} is {row.state}.", fix="Ask again once it is whole.")
    return row.summary


@router.get("/bundles/{bundle_id}/diff/{other_id}")
def read_diff(
    bundle_id: int, other_id: int, session: Reading, stores: AppStores, actor: Reader
) -> DiffOut:
    """From the earlier to the later of both, whichever is named first."""
    before, after = in_order(get_bundle(session, bundle_id), get_bundle(session, other_id))
    document = changes(session, stores.artifacts, before, after)
    ends = {
        "before": {"bundle_id": before.id, **document["before"]},
        "after": {"bundle_id": after.id, **document["after"]},
    }
    return DiffOut.model_validate({**document, **ends})
