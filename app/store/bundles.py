"""Bundles: asked for, looked at while they land, read back whole."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, select

from app.domain.capture import Bundle, Capture, Outcome
from app.domain.endpoints import MIB
from app.domain.playbook import CollectBundle, Probe
from app.errors import NotFound
from app.store.artifacts import ArtifactStore
from app.store.audit import Actor
from app.store.outbox import request
from app.store.stores import Stores
from app.store.tables import BundleRow, CaptureRow, Job, Target

MAX_BODY_BYTES = 64 * MIB  # of one capture; the collector keeps far less


def request_bundle(  # noqa: PLR0913
    session: Session,
    stores: Stores,
    *,
    incident_id: int | None,
    target: Target,
    probe: Probe,
    interval_seconds: float,
    actor: Actor,
    at: datetime,
) -> tuple[Job, BundleRow]:
    """Ask for a bundle of *target*: the job, and the bundle in which its captures will land."""
    assert target.id is not None
    step = CollectBundle(target.id, probe, interval_seconds)
    job = request(
        session,
        stores.outbox,
        step,
        incident_id=incident_id,
        target_id=target.id,
        actor=actor,
        at=at,
    )
    return job, open_bundle(session, job, target, step, at=at)


def open_bundle(
    session: Session, job: Job, target: Target, step: CollectBundle, *, at: datetime
) -> BundleRow:
    """The bundle of a job: the one that it has, otherwise a new one without captures."""
    if found := session.exec(select(BundleRow).where(BundleRow.job_id == job.id)).first():
        return found
    bundle = BundleRow(
        incident_id=job.incident_id,
        target_id=target.id,
        job_id=job.id,
        base_url=target.base_url,
        probe=step.probe,
        interval_seconds=step.interval_seconds,
        collected_at=at,
    )
    session.add(bundle)
    session.flush()
    return bundle


def get_bundle(session: Session, bundle_id: int) -> BundleRow:
    """The bundle of that number; raises NotFound."""
    bundle = session.get(BundleRow, bundle_id)
    if bundle is None:
        raise NotFound(f"There is no bundle {bundle_id}.")
    return bundle


def bundle_of_job(session: Session, job_id: int) -> int | None:
    """The number of the bundle that a job collects; None for a job that collects none."""
    return session.exec(select(BundleRow.id).where(BundleRow.job_id == job_id)).first()


def bundle_of_artifact(session: Session, artifact_id: int) -> int | None:
    """The number of the bundle that was read from or written to an artifact, if there is one."""
    return session.exec(select(BundleRow.id).where(BundleRow.artifact_id == artifact_id)).first()


def bundles_of(session: Session, incident_id: int) -> Sequence[BundleRow]:
    """The bundles of an incident, newest first, unfinished ones included."""
    query = select(BundleRow).where(BundleRow.incident_id == incident_id)
    newest = query.order_by(col(BundleRow.collected_at).desc(), col(BundleRow.id).desc())
    return session.exec(newest).all()


def captures_of(session: Session, bundle_id: int) -> Sequence[CaptureRow]:
    """The captures of a bundle as far as they have landed, in the order of asking."""
    query = select(CaptureRow).where(CaptureRow.bundle_id == bundle_id)
    return session.exec(query.order_by(col(CaptureRow.position), col(CaptureRow.name))).all()


def load_bundle(session: Session, artifacts: ArtifactStore, bundle_id: int) -> Bundle:
    """A bundle with the bodies of its captures, verified; raises NotFound or Damaged."""
    row = get_bundle(session, bundle_id)
    return Bundle(
        base_url=row.base_url,
        collected_at=row.collected_at,
        captures=tuple(load_captures(artifacts, captures_of(session, bundle_id))),
        finished_at=row.finished_at,
        interval_seconds=row.interval_seconds,
        probe=row.probe,
        made_by=row.made_by,
    )


def load_captures(artifacts: ArtifactStore, rows: Sequence[CaptureRow]) -> list[Capture]:
    """Captures as the domain knows them, each body read back and verified."""
    return [
        Capture(
            name=row.name,
            path=row.path,
            outcome=Outcome(row.outcome),
            status=row.status,
            started_at=row.started_at,
            seconds=row.seconds,
            body=artifacts.read(row.sha256, MAX_BODY_BYTES) if row.sha256 else b"",
            headers=row.headers,
            detail=row.detail,
            redacted=tuple(row.redacted),
        )
        for row in rows
    ]


def healthy_before(session: Session, bundle: BundleRow) -> BundleRow | None:
    """The last bundle of the same target before *bundle* in which it served well."""
    if bundle.target_id is None:
        return None
    query = select(BundleRow).where(
        BundleRow.target_id == bundle.target_id,
        BundleRow.id != bundle.id,
        col(BundleRow.collected_at) <= bundle.collected_at,
        col(BundleRow.healthy).is_(True),
    )
    newest = query.order_by(col(BundleRow.collected_at).desc(), col(BundleRow.id).desc())
    return session.exec(newest.limit(1)).first()
