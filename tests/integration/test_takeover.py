"""Several workers on one PostgreSQL: another goes on with what a silent one held."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.jobs.beats import SILENT_SECONDS, Beats
from app.jobs.identity import Identity
from app.settings import Settings
from app.store import migrations
from app.store.stores import Stores
from tests.integration import make, processes


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
        job_id = make.job(stores, partition="target:1", slices=30, seconds=0.1)
        held = make.until(stores, job_id, "running")
        with processes.working(second, postgres_url):
            fall_silent(silent)
            later = make.now() + timedelta(seconds=SILENT_SECONDS + 1)
            Beats(stores, "test", set()).take_over(later)
            while make.until(stores, job_id, "queued", "running").worker in (None, held.worker):
                time.sleep(0.01)
            if silent.poll() is None:
                silent.send_signal(signal.SIGCONT)
            job = make.until(stores, job_id, "succeeded", seconds=30)
    assert job.worker != held.worker
    assert (job.attempts, job.done) == (2, 30)
    numbers = [int(line.split()[1]) for folder in (first, second) for line in _trace(folder)]
    assert sorted(set(numbers)) == list(range(1, 31))
    assert len(numbers) <= 31, "a worker that wakes up again stops at its next look"


def test_an_intrusive_job_of_a_silent_worker_asks_again(
    stores: Stores, postgres_url: str, tmp_path: Path
) -> None:
    with processes.working(tmp_path / "first", postgres_url) as worker:
        job_id = make.job(stores, "act", intrusive=True, seconds=30)
        make.until(stores, job_id, "running")
        while not _trace(tmp_path / "first"):
            time.sleep(0.01)
        processes.kill(worker)
    later = make.now() + timedelta(seconds=SILENT_SECONDS + 1)
    Beats(stores, "test", set()).take_over(later)
    make.until(stores, job_id, "interrupted")


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
