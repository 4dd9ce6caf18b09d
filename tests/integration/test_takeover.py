"""Several workers on one PostgreSQL: another goes on with what a silent one held."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from app.jobs.beats import SILENT_SECONDS, Beats
from app.jobs.identity import Identity
from app.settings import Settings
from app.store import migrations
from app.store.attempts import Attempt, claim, progress
from app.store.database import IDLE_IN_TRANSACTION_SECONDS, reading, writing
from app.store.stores import Stores
from app.store.tables import Job
from tests.integration import make, processes, verbs
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def stores(postgres_url: str, tmp_path: Path) -> Iterator[Stores]:
    settings = Settings(data_dir=tmp_path / "web", database_url=postgres_url, min_free_bytes=0)
    opened = Stores.open(settings)
    migrations.upgrade(opened.engine)
    yield opened
    opened.close()


def _trace(folder: Path) -> list[str]:
    path = folder / "trace"
    return path.read_text().splitlines() if path.exists() else []


def _die(worker: subprocess.Popen[str]) -> None:
    processes.kill(worker)


def _freeze(worker: subprocess.Popen[str]) -> None:
    worker.send_signal(signal.SIGSTOP)


def _take_over(stores: Stores, job_id: int) -> None:
    """As every worker does regularly, when more time than silence may last has gone by.

    A job whose row is locked at this moment is left to the next time.
    """
    held = make.until(stores, job_id, "running").key

    def given_up() -> bool:
        Beats(stores, "test", set()).take_over(make.now() + timedelta(seconds=SILENT_SECONDS + 1))
        with reading(stores.engine) as session:
            job = session.get_one(Job, job_id)
        return (job.state, job.key) != ("running", held)

    until(given_up, seconds=IDLE_IN_TRANSACTION_SECONDS + 60)


@pytest.mark.parametrize(
    "fall_silent", [pytest.param(_die, id="killed"), pytest.param(_freeze, id="frozen")]
)
def test_another_worker_goes_on_with_the_job_of_a_silent_one(
    stores: Stores,
    postgres_url: str,
    tmp_path: Path,
    fall_silent: Callable[[subprocess.Popen[str]], None],
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with processes.working(first, postgres_url) as silent:
        job_id = make.job(stores, partition="target:1", slices=30, seconds=0.1, waits_at=20)
        held = make.until(stores, job_id, "running")
        nobody = (None, held.worker)
        with processes.working(second, postgres_url):
            fall_silent(silent)
            _take_over(stores, job_id)
            until(lambda: make.until(stores, job_id, "queued", "running").worker not in nobody)
            for folder in (first, second):
                verbs.let_go_on(folder, job_id)
            if silent.poll() is None:
                silent.send_signal(signal.SIGCONT)
            job = make.until(stores, job_id, "succeeded")
    assert job.worker != held.worker
    assert (job.attempts, job.done) == (2, 30)
    numbers = [int(line.split()[1]) for folder in (first, second) for line in _trace(folder)]
    assert sorted(set(numbers)) == list(range(1, 31))
    assert len(numbers) <= 31, "a worker that wakes up again stops at its next look"


def _freeze_in_a_transaction(frozen: Stores, attempt: Attempt, *, others: Stores) -> None:
    with writing(frozen.engine) as session:
        progress(session, attempt, "about to freeze")
        _take_over(others, attempt.job_id)


def test_what_a_frozen_worker_locked_is_let_go(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data_dir=tmp_path, database_url=postgres_url, min_free_bytes=0)
    with closing(Stores.open(settings)) as stores:
        migrations.upgrade(stores.engine)
        job_id = make.job(stores)
        with writing(stores.engine) as session:
            attempt = Attempt(job_id, session.get_one(Job, job_id).key)
            claim(session, attempt, worker="frozen", places={"steps": 1}, at=make.now())
        monkeypatch.setattr("app.store.database.IDLE_IN_TRANSACTION_SECONDS", 1)
        with (
            closing(Stores.open(settings)) as frozen,
            pytest.raises(DBAPIError, match="idle-in-transaction"),
        ):
            _freeze_in_a_transaction(frozen, attempt, others=stores)


def test_an_intrusive_job_of_a_silent_worker_asks_again(
    stores: Stores, postgres_url: str, tmp_path: Path
) -> None:
    with processes.working(tmp_path / "first", postgres_url) as worker:
        job_id = make.job(stores, "act", intrusive=True, seconds=30)
        make.until(stores, job_id, "running")
        until(lambda: _trace(tmp_path / "first"))
        processes.kill(worker)
    _take_over(stores, job_id)
    assert make.until(stores, job_id, "interrupted").acted_at is not None


def test_a_worker_that_is_heard_keeps_its_jobs(
    stores: Stores, postgres_url: str, tmp_path: Path
) -> None:
    with processes.working(tmp_path / "first", postgres_url):
        job_id = make.job(stores, "hang")
        held = make.until(stores, job_id, "running")
        beats = Beats(stores, held.worker or "", set())
        beats.heartbeat(make.now())
        beats.take_over(make.now())
        assert make.until(stores, job_id, "running").key == held.key


def test_workers_of_one_folder_have_names_of_their_own_and_keep_them(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    first, second = Identity.take(settings), Identity.take(settings)
    assert first.executor_id != second.executor_id
    first.release()
    again = Identity.take(settings)
    assert again.executor_id == first.executor_id
    again.release()
    second.release()
