"""How captures come into the database, and how a bundle becomes whole.

A body is stored as an object first and its row is written afterwards, under the bundle's number
and the capture's name: writing a capture twice changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Unpack

from sqlmodel import Session, select

from app.clients.bundle_files import write_archive
from app.domain.bundle import summarise
from app.domain.bundle_diff import diff
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.playbook import BundleCollected
from app.domain.urgency import serves_well
from app.store import audit, evidence, incidents, targets, timeline
from app.store.artifacts import ArtifactStore, StoredFile
from app.store.audit import Actor
from app.store.bundles import captures_of, load_captures
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import BundleRow, CaptureRow, Target

KIND = "bundle"
MOST_CHANGES = 20  # kept in a summary; the page of the diff tells all
TIER = "T1"  # of our own archives: secrets are out, names of hosts and models are in


@dataclass(frozen=True, slots=True)
class Baseline:
    """The target's last healthy bundle: what "high" and "changed" are measured against."""

    bundle_id: int
    summary: dict[str, Any]
    captures: Sequence[CaptureRow]

    def bundle(self, artifacts: ArtifactStore) -> Bundle:
        """Its captures read back from *artifacts*."""
        told = self.summary
        return Bundle(
            base_url=str(told.get("base_url")),
            collected_at=datetime.fromisoformat(str(told["collected_at"])),
            captures=tuple(load_captures(artifacts, self.captures)),
        )


@dataclass(frozen=True, slots=True)
class WholeBundle:
    """A bundle with all that is stored of it, ready to be written in one transaction."""

    bundle: Bundle
    bodies: Mapping[str, StoredFile]  # by capture name
    archive: StoredFile
    summary: dict[str, Any]


def put_bodies(artifacts: ArtifactStore, captures: Iterable[Capture]) -> dict[str, StoredFile]:
    """Store the bodies of *captures*; an empty one is not stored."""
    return {one.name: artifacts.put(one.body) for one in captures if one.body}


def land(
    session: Session, bundle_id: int, capture: Capture, body: StoredFile | None, *, position: int
) -> None:
    """Write one capture, in the caller's transaction."""
    if body:
        evidence.hold_bytes(session, body)
    session.merge(
        CaptureRow(
            bundle_id=bundle_id,
            name=capture.name,
            position=position,
            path=capture.path,
            outcome=capture.outcome.value,
            status=capture.status,
            started_at=capture.started_at,
            seconds=capture.seconds,
            size_bytes=len(capture.body),
            sha256=body.sha256 if body else None,
            headers=capture.headers,
            detail=capture.detail,
            redacted=list(capture.redacted),
        )
    )


def whole(
    artifacts: ArtifactStore,
    bundle: Bundle,
    *,
    baseline: Baseline | None,
    archive: StoredFile | None = None,
) -> WholeBundle:
    """Store what is to be kept of *bundle* and read it; *archive* is where it came from, if so."""
    bodies = put_bodies(artifacts, bundle.captures)
    kept = archive or artifacts.put(write_archive(bundle))
    summary = summarise(bundle, baseline=baseline.summary if baseline else None)
    if baseline:
        change = diff(baseline.bundle(artifacts), bundle)
        summary["changed_since_healthy"] = {
            "bundle_id": baseline.bundle_id,
            "alike": change["alike"],
            "not_compared": change["not_compared"],
            "changes": change["changes"][:MOST_CHANGES],
            "changes_total": len(change["changes"]),
        }
    return WholeBundle(bundle, bodies, kept, summary)


def complete(session: Session, row: BundleRow, made: WholeBundle, *, at: datetime) -> None:
    """Write the captures in their final order and the summary; the bundle is whole now."""
    session.add(row)
    session.flush()
    assert row.id is not None
    bundle, summary = made.bundle, made.summary
    for position, capture in enumerate(bundle.captures):
        land(session, row.id, capture, made.bodies.get(capture.name), position=position)
    row.state = "complete"
    row.base_url, row.made_by = bundle.base_url, bundle.made_by
    # A clock that runs ahead must not make this the newest bundle for ever.
    row.collected_at = min(bundle.collected_at, at)
    row.finished_at = min(bundle.finished_at or at, at)
    row.summary, row.version = summary, summary.get("version")
    row.verdict = (summary.get("health") or {}).get("verdict")
    # Only what this console collected proves health: a file can be handed in by anybody.
    row.healthy = row.job_id is not None and serves_well(summary)
    session.flush()


def keep_archive(
    session: Session,
    row: BundleRow,
    archive: StoredFile,
    *,
    actor: Actor,
    at: datetime,
    **custody: Unpack[evidence.Custody],
) -> None:
    """Keep the archive of a whole bundle as an artifact of its incident."""
    full: evidence.Custody = {
        **custody,
        "kind": KIND,
        "covers_from": row.collected_at,
        "covers_to": row.finished_at,
    }
    artifact = evidence.keep(
        session, archive, incident_id=row.incident_id, actor=actor, at=at, **full
    )
    row.artifact_id = artifact.id


def tell(session: Session, row: BundleRow, *, actor: Actor, at: datetime) -> None:
    """Let the incident know of a whole bundle: its list line and its timeline."""
    if row.incident_id is None:
        return
    assert row.id is not None
    incidents.take_in_bundle(session, row.incident_id, row)
    target = session.get(Target, row.target_id) if row.target_id else None
    collected = _collected(session, row, target.name if target else row.base_url)
    timeline.record(
        session,
        collected,
        incident_id=row.incident_id,
        actor=actor,
        at=at,
        occurred_at=row.finished_at,
    )


def baseline_of(session: Session, target: Target | None) -> Baseline | None:
    """The target's last healthy bundle; None where there is none yet."""
    if target is None or target.last_healthy_bundle_id is None:
        return None
    row = session.get(BundleRow, target.last_healthy_bundle_id)
    if row is None or row.id is None or row.summary is None:
        return None
    return Baseline(row.id, row.summary, captures_of(session, row.id))


def import_bundle(
    stores: Stores,
    bundle: Bundle,
    archive: StoredFile,
    *,
    incident_id: int,
    actor: Actor,
    at: datetime,
    **custody: Unpack[evidence.Custody],
) -> BundleRow:
    """Take in a bundle that was collected elsewhere; *archive* is the file that it came in.

    The archive stays T2, as another tool may have left secrets in it; the captures are
    redacted. It never becomes what later bundles of the target are compared with.
    """
    with reading(stores.engine) as session:
        target = _target_of(session, bundle)
        baseline = baseline_of(session, target)
    made = whole(stores.artifacts, bundle, baseline=baseline, archive=archive)
    row = BundleRow(
        incident_id=incident_id,
        target_id=target.id if target else None,
        base_url=bundle.base_url,
        probe=bundle.probe,
        interval_seconds=bundle.interval_seconds or 0.0,
        collected_at=at,
    )
    with writing(stores.engine) as session:
        complete(session, row, made, at=at)
        keep_archive(session, row, archive, actor=actor, at=at, **custody)
        audit.note(session, actor, "bundle.import", f"bundle:{row.id}", at=at)
        tell(session, row, actor=actor, at=at)
    return row


def take_in_target(session: Session, row: BundleRow) -> None:
    """Let the target remember its newest bundle."""
    if row.target_id is not None:
        targets.take_in_bundle(session, row.target_id, row)


def _target_of(session: Session, bundle: Bundle) -> Target | None:
    query = select(Target).where(Target.base_url == bundle.base_url, Target.deleted_at == None)  # noqa: E711
    return session.exec(query).first()


def _collected(session: Session, row: BundleRow, target: str) -> BundleCollected:
    assert row.id is not None
    query = select(CaptureRow.outcome).where(CaptureRow.bundle_id == row.id)
    outcomes = [outcome for outcome in session.exec(query) if outcome != Outcome.NOT_ASKED]
    health = (row.summary or {}).get("health") or {}
    finished_at = row.finished_at or row.collected_at
    return BundleCollected(
        bundle_id=row.id,
        target=target,
        says=str(health.get("says") or "Health unknown."),
        verdict=str(row.verdict or "unknown"),
        answered=outcomes.count(Outcome.ANSWERED),
        asked=len(outcomes),
        seconds=(finished_at - row.collected_at).total_seconds(),
    )
