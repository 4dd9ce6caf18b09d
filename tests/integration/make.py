"""Rows with a default for everything; a test names only what it is about."""

import time
from datetime import UTC, datetime
from uuid import uuid4

from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.outbox import queue_job
from app.store.stores import Stores
from app.store.tables import Incident, Job, Target

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MIRA = Actor("mira", "user", "operator")


def now() -> datetime:
    return datetime.now(UTC)


def incident(stores: Stores, title: str = "TTFT is up") -> int:
    """The number of a new incident."""
    row = Incident(title=title, tags=[], opened_by="mira", opened_at=NOON, changed_at=NOON)
    with writing(stores.engine) as session:
        session.add(row)
    assert row.id is not None
    return row.id


def target(stores: Stores, base_url: str = "http://127.0.0.1:9", name: str = "decode-a") -> Target:
    """A registered target."""
    row = Target(name=name, base_url=base_url, labels={}, created_at=NOON, updated_at=NOON)
    with writing(stores.engine) as session:
        session.add(row)
    return row


def job(
    stores: Stores,
    kind: str = "count",
    *,
    partition: str | None = None,
    incident_id: int | None = None,
    intrusive: bool = False,
    **arguments: object,
) -> int:
    """The number of a job that was just asked for; alone in its partition if none is given."""
    with writing(stores.engine) as session:
        row = queue_job(
            session,
            stores.outbox,
            kind,
            partition=partition or f"alone:{uuid4().hex}",
            actor=MIRA,
            at=now(),
            arguments=arguments,
            incident_id=incident_id,
            intrusive=intrusive,
        )
    assert row.id is not None
    return row.id


def until(stores: Stores, job_id: int, *states: str, seconds: float = 60.0) -> Job:
    """The job as soon as it is in one of *states*."""
    deadline = time.monotonic() + seconds
    while True:
        with reading(stores.engine) as session:
            row = session.get_one(Job, job_id)
        if row.state in states:
            return row
        assert time.monotonic() < deadline, f"job {job_id} is still {row.state}: {row.says}"
        time.sleep(0.02)
