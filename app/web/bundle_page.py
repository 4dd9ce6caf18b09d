"""What a bundle's page shows, gathered from the stores."""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session

from app.domain.bundle_diff import diff
from app.domain.capture import Bundle
from app.errors import Conflict
from app.store.artifacts import ArtifactStore
from app.store.bundles import captures_of, healthy_before, load_captures
from app.store.jobs import get_job
from app.store.tables import Artifact, BundleRow, CaptureRow, Target
from app.web.jobs import told
from app.web.views.base import Shell
from app.web.views.bundle_told import (
    BundleTold,
    DiffTold,
    LoadTold,
    SignalsTold,
    VerdictTold,
    WindowTold,
)
from app.web.views.bundles import BundlePage, answers_of
from app.web.views.jobs import JobTold

COLLECTING = "collecting"


def told_of(session: Session, row: BundleRow) -> BundleTold:
    """The bundle with the names that its pages show."""
    target = session.get(Target, row.target_id) if row.target_id else None
    archive = session.get(Artifact, row.artifact_id) if row.artifact_id else None
    return BundleTold.of(row, target, archive)


def in_order(one: BundleRow, other: BundleRow) -> tuple[BundleRow, BundleRow]:
    """Both bundles, the earlier one first; raises Conflict for one that is not whole."""
    for row in (one, other):
        if row.state != "complete":
            raise Conflict(f"Bundle {row.id} is {row.state}.", fix="Compare it once it is whole.")
    before, after = sorted((one, other), key=lambda row: (row.collected_at, row.id or 0))
    return before, after


def changes(
    session: Session, artifacts: ArtifactStore, before: BundleRow, after: BundleRow
) -> dict[str, Any]:
    """What changed from *before* to *after*, most suspect first."""
    return diff(_configured(session, artifacts, before), _configured(session, artifacts, after))


def _configured(session: Session, artifacts: ArtifactStore, row: BundleRow) -> Bundle:
    """The bundle without its metrics, which say nothing of a configuration."""
    assert row.id is not None
    rows = [one for one in captures_of(session, row.id) if not one.name.startswith("metrics")]
    return Bundle(row.base_url, row.collected_at, tuple(load_captures(artifacts, rows)))


def bundle_page(
    session: Session, artifacts: ArtifactStore, row: BundleRow, shell: Shell
) -> BundlePage:
    assert row.id is not None
    captures, summary = captures_of(session, row.id), row.summary or {}
    healthy, job = healthy_before(session, row), _job(session, row, shell)
    return BundlePage(
        shell=shell,
        bundle=told_of(session, row),
        answers=answers_of(row, captures),
        live=row.state == COLLECTING,
        job=job,
        following="events" if job and job.unfinished else "",
        may_act=shell.may_act,
        names_tab=False,
        verdict=VerdictTold.of(summary, captures) if row.summary else None,
        load=LoadTold.of(summary),
        signals=SignalsTold.of(summary),
        window=WindowTold.of(summary, (healthy.summary or {}) if healthy else {}),
        healthy=healthy,
        diff=_diff(session, artifacts, healthy, row),
        problems=summary.get("problems") or [],
        masked=len(summary.get("redacted") or []),
        configuration=_configuration(captures),
    )


def _configuration(captures: Sequence[CaptureRow]) -> str | None:
    names = (one.name for one in captures if one.sha256)
    return next((name for name in names if name in ("server_info", "get_server_info")), None)


def _job(session: Session, row: BundleRow, shell: Shell) -> JobTold | None:
    """The job that fills the bundle, as long as there is something to say or to do about it."""
    if row.job_id is None or row.state == "complete":
        return None
    return told(session, get_job(session, row.job_id), shell.now)


def _diff(
    session: Session, artifacts: ArtifactStore, healthy: BundleRow | None, row: BundleRow
) -> DiffTold | None:
    if healthy is None or row.state != "complete":
        return None
    document = changes(session, artifacts, healthy, row)
    return DiffTold.of(healthy, row, document, heading="Configuration against last healthy")
