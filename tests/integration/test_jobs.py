"""Jobs in the hands of a real engine, on both databases: how each of them can end."""

import time
from collections.abc import Callable, Iterator

import pytest
from sqlmodel import select

from app.errors import Conflict, NotFound
from app.store import attempts, jobs
from app.store.attempts import Attempt, Superseded
from app.store.database import reading, writing
from app.store.outbox import new_key
from app.store.stores import Stores
from app.store.tables import AuditEvent, Job, TimelineEvent
from tests.integration import make, verbs
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.verbs import VERBS
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data")), VERBS) as opened:
        yield opened


Ask = Callable[[Stores, int], None]


def _trace(stores: Stores, job_id: int) -> list[str]:
    path = stores.settings.data_dir / "trace"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line.startswith(f"{job_id} ")]


def _cancel(stores: Stores, job_id: int) -> None:
    with writing(stores.engine) as session:
        job = jobs.get_job(session, job_id)
        jobs.request_cancel(session, job, make.MIRA, make.now())


def _resume(stores: Stores, job_id: int) -> None:
    with writing(stores.engine) as session:
        job = jobs.get_job(session, job_id)
        jobs.request_resume(session, stores.outbox, job, make.MIRA, make.now())


def _events(stores: Stores, incident_id: int) -> list[TimelineEvent]:
    with reading(stores.engine) as session:
        query = select(TimelineEvent).where(TimelineEvent.incident_id == incident_id)
        return list(session.exec(query))


def test_a_job_is_done_slice_by_slice_and_once(stores: Stores) -> None:
    job_id = make.job(stores, slices=3)
    job = make.until(stores, job_id, "succeeded")
    assert (job.done, job.total, job.attempts, job.says) == (3, 3, 1, "Done.")
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.version > 3, "each change is a version that live pages can see"
    assert _trace(stores, job_id) == [f"{job_id} {number}" for number in (1, 2, 3)]


def test_a_refusal_is_the_reason_on_the_job_and_in_the_timeline(stores: Stores) -> None:
    incident_id = make.incident(stores)
    job = make.until(stores, make.job(stores, "refuse", incident_id=incident_id), "failed")
    assert job.reason == "The target said no. Ask its owner."
    [event] = _events(stores, incident_id)
    assert (event.kind, event.detail["reason"]) == ("StepFailed", job.reason)


def test_a_mistake_of_ours_ends_the_job_and_says_so(stores: Stores) -> None:
    job = make.until(stores, make.job(stores, "fall over"), "failed")
    assert job.reason == "The console itself failed: ZeroDivisionError."


def test_a_kind_that_nobody_knows_fails_and_does_not_wait_for_ever(stores: Stores) -> None:
    job = make.until(stores, make.job(stores, "exorcise"), "failed")
    assert job.reason == "This version of the console does not know the step exorcise."


def test_cancel_is_honoured_within_a_second_while_the_work_hangs(stores: Stores) -> None:
    incident_id = make.incident(stores)
    job_id = make.job(stores, "hang", incident_id=incident_id)
    make.until(stores, job_id, "running")
    asked = time.monotonic()
    _cancel(stores, job_id)
    job = make.until(stores, job_id, "cancelled")
    assert time.monotonic() - asked < 1.0 * BUSY
    assert job.says == "Cancelled by mira."
    [event] = _events(stores, incident_id)
    assert (event.kind, event.detail["by"]) == ("StepCancelled", "mira")


def test_a_job_that_waits_is_cancelled_at_once_and_never_begins(stores: Stores) -> None:
    first = make.job(stores, "hang", partition="target:wait")
    make.until(stores, first, "running")
    second = make.job(stores, "hang", partition="target:wait")
    _cancel(stores, second)
    assert make.until(stores, second, "cancelled").started_at is None
    _cancel(stores, first)
    make.until(stores, first, "cancelled")
    time.sleep(0.6)  # time enough for the engine to take the next one of this partition
    assert _trace(stores, second) == []


def test_resume_goes_on_where_the_job_stopped(stores: Stores) -> None:
    job_id = make.job(stores, slices=6, seconds=0.1, waits_at=4)
    until(lambda: len(_trace(stores, job_id)) >= 2)
    _cancel(stores, job_id)
    stopped = make.until(stores, job_id, "cancelled")
    assert 2 <= stopped.done < 6, "what was done stays readable"
    verbs.let_go_on(stores.settings.data_dir, job_id)
    _resume(stores, job_id)
    job = make.until(stores, job_id, "succeeded")
    assert (job.attempts, job.done) == (2, 6)
    assert job.key != stopped.key
    assert _trace(stores, job_id) == [f"{job_id} {number}" for number in range(1, 7)]


def test_what_a_person_asked_of_a_job_is_in_the_audit_log(stores: Stores) -> None:
    job_id = make.job(stores, "hang")
    _cancel(stores, job_id)
    with reading(stores.engine) as session:
        query = select(AuditEvent).where(AuditEvent.subject == f"job:{job_id}")
        assert [line.action for line in session.exec(query)] == ["job.cancel"]
    make.until(stores, job_id, "cancelled")


@pytest.mark.parametrize(
    "ask", [pytest.param(_cancel, id="cancel"), pytest.param(_resume, id="resume")]
)
def test_a_job_that_ended_well_is_neither_cancelled_nor_resumed(stores: Stores, ask: Ask) -> None:
    job_id = make.job(stores, slices=0)
    make.until(stores, job_id, "succeeded")
    with pytest.raises(Conflict, match="succeeded"):
        ask(stores, job_id)


def test_an_unknown_job_is_not_found(stores: Stores) -> None:
    with reading(stores.engine) as session, pytest.raises(NotFound):
        jobs.get_job(session, 10**9)


def test_two_jobs_of_one_target_never_run_at_the_same_time(stores: Stores) -> None:
    pair = [make.job(stores, partition="target:shared", slices=4, seconds=0.05) for _ in range(2)]
    for job_id in pair:
        make.until(stores, job_id, "succeeded")
    path = stores.settings.data_dir / "trace"
    lines = [line for line in path.read_text().splitlines() if int(line.split()[0]) in pair]
    assert len({line.split()[0] for line in lines[:4]}) == 1, lines
    assert len({line.split()[0] for line in lines[4:]}) == 1, lines


def test_jobs_of_different_targets_run_side_by_side(stores: Stores) -> None:
    several = [make.job(stores, "hang") for _ in range(4)]
    for job_id in several:
        make.until(stores, job_id, "running")
    for job_id in several:
        _cancel(stores, job_id)
    for job_id in several:
        make.until(stores, job_id, "cancelled")


def test_an_intrusive_job_that_nothing_cuts_off_just_runs(stores: Stores) -> None:
    job_id = make.job(stores, "act", intrusive=True)
    assert make.until(stores, job_id, "succeeded").acted_at is not None
    assert _trace(stores, job_id) == [f"{job_id} acted"]


def _held_by_a_dead_worker(stores: Stores, *, intrusive: bool, acted: bool) -> Attempt:
    row = Job(
        key=new_key(),
        kind="count",
        partition=f"alone:{new_key()}",
        arguments={},
        intrusive=intrusive,
        requested_by="mira",
        created_at=make.now(),
        enqueued_at=make.now(),
        acted_at=make.now() if acted else None,
        state="running",
        worker="dead",
    )
    with writing(stores.engine) as session:
        session.add(row)
    assert row.id is not None
    return Attempt(row.id, row.key)


def _claim(stores: Stores, attempt: Attempt) -> Job | None:
    with writing(stores.engine) as session:
        return attempts.claim(session, attempt, worker="test", places={"steps": 99}, at=make.now())


def test_an_intrusive_job_that_acted_is_not_repeated_by_itself(any_stores: Stores) -> None:
    attempt = _held_by_a_dead_worker(any_stores, intrusive=True, acted=True)
    assert _claim(any_stores, attempt) is None
    job = make.until(any_stores, attempt.job_id, "interrupted")
    assert "unless somebody asks" in job.says
    _resume(any_stores, attempt.job_id)
    job = make.until(any_stores, attempt.job_id, "queued")
    assert _claim(any_stores, Attempt(attempt.job_id, job.key)) is not None


@pytest.mark.parametrize(
    "intrusive", [pytest.param(True, id="intrusive"), pytest.param(False, id="harmless")]
)
def test_a_job_that_had_not_acted_goes_on(any_stores: Stores, intrusive: bool) -> None:
    attempt = _held_by_a_dead_worker(any_stores, intrusive=intrusive, acted=False)
    job = _claim(any_stores, attempt)
    assert job is not None
    assert (job.worker, job.attempts) == ("test", 1)


def test_a_worker_that_was_superseded_writes_nothing_more(any_stores: Stores) -> None:
    attempt = _held_by_a_dead_worker(any_stores, intrusive=False, acted=False)
    late = Attempt(attempt.job_id, "a former key")
    with writing(any_stores.engine) as session:
        with pytest.raises(Superseded):
            attempts.progress(session, late, "Still here.")
        with pytest.raises(Superseded):
            attempts.held(session, late)
        with pytest.raises(Superseded):
            attempts.asked_to_stop(session, late)
    assert make.until(any_stores, attempt.job_id, "running").says == ""


def test_a_busy_partition_sends_a_job_back_to_the_queue(any_stores: Stores) -> None:
    running = _held_by_a_dead_worker(any_stores, intrusive=False, acted=False)
    with reading(any_stores.engine) as session:
        partition = session.get_one(Job, running.job_id).partition
    waiting = make.job(any_stores, partition=partition)
    key = make.until(any_stores, waiting, "queued").key
    assert _claim(any_stores, Attempt(waiting, key)) is None
    sent_back = make.until(any_stores, waiting, "queued")
    assert sent_back.enqueued_at is None
    assert sent_back.key != key, "the engine runs each key once"


def test_a_worker_takes_no_more_jobs_than_it_may(any_stores: Stores) -> None:
    first, second = (
        _held_by_a_dead_worker(any_stores, intrusive=False, acted=False) for _ in range(2)
    )
    with writing(any_stores.engine) as session:
        assert attempts.claim(session, first, worker="test", places={"steps": 1}, at=make.now())
        assert not attempts.claim(
            session, second, worker="test", places={"steps": 1}, at=make.now()
        )
        assert not attempts.claim(
            session, second, worker="test", places={"steps": 9}, at=make.now()
        )
