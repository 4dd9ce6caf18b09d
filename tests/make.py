"""Rows with a default for everything; a test names only what it is about."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.clients.dumps import Reading, index_file
from app.domain.capture import Bundle, Capture
from app.domain.dumps.recorded import Row
from app.store import dump_rows, dumps, landing
from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.dump_tables import Dump
from app.store.evidence import attach
from app.store.incidents import OpenIncident, open_incident
from app.store.stores import Stores
from app.store.tables import BundleRow, Incident, Job, Target
from tests import bundles

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MIRA = Actor("mira", "user", "operator")
ADA = Actor("ada", "user", "admin")


def target(stores: Stores, name: str = "decode-a", **given: Any) -> Target:
    """A registered target, kept."""
    row = Target(
        **{
            "name": name,
            "base_url": f"http://{name}.example:30000",
            "labels": {},
            "created_at": NOON,
            "updated_at": NOON,
            **given,
        }
    )
    with writing(stores.engine) as session:
        session.add(row)
    return row


def incident(
    stores: Stores,
    title: str = "TTFT is up",
    *targets: Target,
    actor: Actor = MIRA,
    at: datetime = NOON,
    **given: Any,
) -> Incident:
    """An open incident on *targets*, kept; nothing was asked of them."""
    ids = tuple(one.id for one in targets if one.id is not None)
    wanted = OpenIncident(title, **{"target_ids": ids, "collect": False, **given})
    with writing(stores.engine) as session:
        return open_incident(session, wanted, actor=actor, at=at)


def bundle(
    stores: Stores,
    incident: Incident,
    target: Target,
    captures: Sequence[Capture],
    *,
    at: datetime = NOON,
) -> BundleRow:
    """A whole bundle of *target* that ended *at*, taken in by incident and target."""
    took = timedelta(seconds=12)
    shift = at - took - bundles.NOON
    moved = [
        replace(one, started_at=one.started_at + shift) if one.started_at else one
        for one in captures
    ]
    with reading(stores.engine) as session:
        baseline = landing.baseline_of(session, session.get(Target, target.id))
    made = landing.whole(
        stores.artifacts,
        Bundle(target.base_url, at - took, tuple(moved), finished_at=at, made_by="a test"),
        baseline=baseline,
    )
    with writing(stores.engine) as session:
        job = Job(
            key=f"bundle of {target.id} at {at}",
            kind="collect",
            incident_id=incident.id,
            target_id=target.id,
            partition=f"target:{target.id}",
            arguments={"target_id": target.id},
            state="succeeded",
            requested_by="mira",
            created_at=at - took,
            finished_at=at,
        )
        session.add(job)
        session.flush()
        row = BundleRow(
            incident_id=incident.id,
            target_id=target.id,
            job_id=job.id,
            base_url=target.base_url,
            collected_at=at - took,
        )
        session.add(row)
        session.flush()
        landing.complete(session, row, made, at=at)
        landing.keep_archive(
            session,
            row,
            made.archive,
            actor=MIRA,
            at=at,
            name=f"bundle-{row.id}.zip",
            taken_from=f"target {target.name}",
            tier=landing.TIER,
            media_type="application/zip",
        )
        landing.take_in_target(session, row)
        landing.tell(session, row, actor=MIRA, at=at)
    return row


def dump(
    stores: Stores,
    incident: Incident,
    content: bytes,
    name: str = "crash.pkl",
    *,
    at: datetime = NOON,
) -> Dump:
    """A file of recorded requests on an incident, read as its job reads it; the job is over."""
    stored = stores.artifacts.put(content)
    assert incident.id is not None
    with writing(stores.engine) as session:
        artifact = attach(
            session,
            stored,
            incident_id=incident.id,
            name=name,
            kind=dumps.KIND,
            taken_from="upload from a test",
            actor=MIRA,
            at=at,
        )
        row = Dump(
            incident_id=incident.id,
            artifact_id=artifact.id or 0,
            sha256=stored.sha256,
            name=name,
            added_by=MIRA.name,
            added_at=at,
        )
        session.add(row)
        session.flush()
        job = Job(
            key=f"dump {row.id}",
            kind="ingest",
            incident_id=incident.id,
            partition=f"dump:{row.id}",
            arguments={"dump_id": row.id},
            state="succeeded",
            requested_by=MIRA.name,
            created_at=at,
            finished_at=at,
        )
        session.add(job)
        session.flush()
        row.job_id = job.id
    rows: list[Row] = []
    with stores.artifacts.as_file(stored.sha256) as path:
        document = index_file(path, reading=Reading(called=name), take=rows.extend)
    with writing(stores.engine) as session:
        dump_rows.put_rows(session, row.id or 0, rows)
        return dumps.settle(session, row.id or 0, document, at=at)
