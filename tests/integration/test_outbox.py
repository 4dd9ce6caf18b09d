"""Rows with their cause, enqueued after commit: cause and work cannot drift apart."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import select

from app.domain.playbook import CollectBundle
from app.jobs.beats import Beats
from app.jobs.engine import Engine
from app.settings import Settings
from app.store import migrations, outbox
from app.store.database import reading, writing
from app.store.outbox import new_key
from app.store.stores import Stores
from app.store.tables import AuditEvent, Idempotency, Job, TimelineEvent, Worker
from tests.integration import make
from tests.integration.verbs import VERBS

pytestmark = pytest.mark.slow


@pytest.fixture
def idle(any_stores: Stores) -> Stores:
    """Stores whose engine's database exists, and nobody works."""
    if any_stores.engine.dialect.name == "sqlite":  # on PostgreSQL it comes with the template
        Engine.start(any_stores, VERBS).stop()
    return any_stores


def _beats(stores: Stores) -> Beats:
    return Beats(stores, "worker-of-the-test", set())


def _job(stores: Stores, job_id: int) -> Job:
    with reading(stores.engine) as session:
        return session.get_one(Job, job_id)


def _keys(stores: Stores) -> list[str]:
    with reading(stores.engine) as session:
        return list(session.exec(select(Job.key)))


def test_a_step_is_a_job_a_timeline_line_and_an_audit_line(any_stores: Stores) -> None:
    incident_id, target = make.incident(any_stores), make.target(any_stores)
    with writing(any_stores.engine) as session:
        job = outbox.request(
            session,
            any_stores.outbox,
            CollectBundle(target.id or 0, "never", 3.0),
            incident_id=incident_id,
            target_id=target.id,
            actor=make.MIRA,
            at=make.NOON,
        )
    with reading(any_stores.engine) as session:
        [event] = session.exec(select(TimelineEvent)).all()
        [line] = session.exec(select(AuditEvent)).all()
    assert (job.kind, job.partition, job.state) == ("collect", f"target:{target.id}", "queued")
    assert job.arguments == {"target_id": target.id, "probe": "never", "interval_seconds": 3.0}
    assert event.detail == {"step": "CollectBundle", "job_id": job.id, "target": "decode-a"}
    assert (line.action, line.subject) == ("job.collect", f"job:{job.id}")


def test_a_job_reaches_the_engine_when_its_cause_is_committed(idle: Stores) -> None:
    with writing(idle.engine) as session:
        job = outbox.queue_job(
            session, idle.outbox, "count", partition="a", actor=make.MIRA, at=make.NOON
        )
        assert idle.outbox.statuses([job.key]) == {}
    assert idle.outbox.statuses([job.key]) == {job.key: "ENQUEUED"}
    assert _job(idle, job.id or 0).enqueued_at is not None


def test_a_job_whose_cause_is_rolled_back_never_was(idle: Stores) -> None:
    class Mistake(Exception):
        pass

    def fail() -> None:
        with writing(idle.engine) as session:
            outbox.queue_job(
                session, idle.outbox, "count", partition="a", actor=make.MIRA, at=make.NOON
            )
            raise Mistake

    with pytest.raises(Mistake):
        fail()
    assert _keys(idle) == []


def test_asking_succeeds_while_the_engine_is_away_and_a_beat_makes_up_for_it(
    tmp_path: Path,
) -> None:
    stores = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(stores.engine)
    job_id = make.job(stores)  # the engine's tables do not exist yet
    assert _job(stores, job_id).enqueued_at is None
    Engine.start(stores, VERBS).stop()
    _beats(stores).enqueue_waiting(make.now())
    assert _job(stores, job_id).enqueued_at is not None
    stores.close()


def test_enqueuing_twice_is_enqueuing_once(idle: Stores) -> None:
    job_id = make.job(idle)
    with writing(idle.engine) as session:
        session.get_one(Job, job_id).enqueued_at = None
    _beats(idle).enqueue_waiting(make.now())
    key = _job(idle, job_id).key
    assert idle.outbox.statuses([key]) == {key: "ENQUEUED"}


def test_a_job_that_the_engine_lost_is_queued_again(idle: Stores) -> None:
    job_id = make.job(idle)
    before = _job(idle, job_id)
    with writing(idle.engine) as session:
        session.get_one(Job, job_id).key = lost = new_key()
    _beats(idle).mend(make.now())
    after = _job(idle, job_id)
    assert after.enqueued_at is None
    assert after.key not in (before.key, lost)


def test_a_job_that_the_engine_knows_is_left_alone(idle: Stores) -> None:
    before = _job(idle, make.job(idle))
    _beats(idle).mend(make.now())
    assert _job(idle, before.id or 0) == before


def test_running_work_that_nobody_has_in_hand_is_queued_again_after_a_while(
    idle: Stores,
) -> None:
    job_id = make.job(idle)  # the engine believes that it waits, as after an upgrade
    with writing(idle.engine) as session:
        job = session.get_one(Job, job_id)
        job.state, job.worker = "running", "worker-of-the-test"
    before, beats = _job(idle, job_id), _beats(idle)
    beats.mend(make.now())
    assert _job(idle, job_id) == before, "the engine may be about to take it up"
    beats.mend(make.now())
    after = _job(idle, job_id)
    assert (after.state, after.enqueued_at) == ("queued", None)
    assert idle.outbox.statuses([before.key]) == {before.key: "CANCELLED"}


def test_what_the_engine_did_is_forgotten_after_a_day(idle: Stores) -> None:
    key = _job(idle, make.job(idle)).key
    idle.outbox.drop([key])
    idle.outbox.forget(make.now() - timedelta(days=1))
    assert key in idle.outbox.statuses([key])
    idle.outbox.forget(make.now() + timedelta(seconds=5))
    assert idle.outbox.statuses([key]) == {}


def test_a_heartbeat_is_one_row_for_each_worker(any_stores: Stores) -> None:
    beats = _beats(any_stores)
    beats.heartbeat(make.NOON)
    beats.heartbeat(make.NOON + timedelta(seconds=10))
    with reading(any_stores.engine) as session:
        [worker] = session.exec(select(Worker)).all()
    assert worker.heard_at - worker.started_at == timedelta(seconds=10)


def test_kept_answers_expire_after_a_day(any_stores: Stores) -> None:
    with writing(any_stores.engine) as session:
        for hours in (1, 25):
            created_at = make.NOON - timedelta(hours=hours)
            key = f"{hours} h old"
            session.add(Idempotency(actor="a", key=key, request_hash="", created_at=created_at))
    _beats(any_stores).expire(make.NOON)
    with reading(any_stores.engine) as session:
        assert session.exec(select(Idempotency.key)).all() == ["1 h old"]


def test_what_the_engine_stores_is_plain_json(idle: Stores) -> None:
    job_id = make.job(idle)
    with idle.outbox.jobs_engine.connect() as connection:
        schema = "" if connection.dialect.name == "sqlite" else "dbos."
        query = f"SELECT inputs FROM {schema}workflow_input"
        [text] = connection.exec_driver_sql(query).scalars()
    assert f"[{job_id}," in text
