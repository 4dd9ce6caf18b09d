"""kill -9 at any moment: no acknowledged write is lost, no work is lost or doubled."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import select

from app.domain.playbook import Probe
from app.settings import Settings
from app.store import attaching, migrations
from app.store.attaching import Sent
from app.store.bundles import captures_of, load_bundle, request_bundle
from app.store.database import reading, writing
from app.store.dump_rows import count_of
from app.store.dumps import get_dump
from app.store.stores import Stores
from app.store.tables import Artifact, BundleRow, Target, TimelineEvent
from tests import recorded
from tests.integration import make, processes, verbs
from tests.integration.scripted_target import answers, scripted_target
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

STOPS_WITHIN_SECONDS = 5.0
METRICS = b"sglang:num_running_reqs 1.0\n"


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """The data folder that a worker process works on, as seen from another process."""
    opened = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(opened.engine)
    yield opened
    opened.close()


def _trace(folder: Path) -> list[str]:
    path = folder / "trace"
    return path.read_text().splitlines() if path.exists() else []


def _wait_for_trace(folder: Path, lines: int) -> None:
    until(lambda: len(_trace(folder)) >= lines)


def test_no_acknowledged_write_is_lost(stores: Stores, tmp_path: Path) -> None:
    incident_id = make.incident(stores)
    writer = processes.start("writer", str(tmp_path), str(incident_id))
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(150)]
    writer.kill()
    acknowledged += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    processes.kill(writer)
    with reading(stores.engine) as session:
        kept = [row.detail["text"] for row in session.exec(select(TimelineEvent))]
    missing = {f"note {number}" for number in acknowledged} - set(kept)
    assert missing == set()
    assert len(kept) - len(acknowledged) <= 1, "at most one was committed and not yet told"


@pytest.mark.parametrize(
    "engine_forgets", [pytest.param(False, id="as-it-is"), pytest.param(True, id="file-deleted")]
)
def test_a_killed_worker_goes_on_where_it_was(
    stores: Stores, tmp_path: Path, engine_forgets: bool
) -> None:
    with processes.working(tmp_path) as worker:
        job_id = make.job(stores, slices=12, seconds=0.1, waits_at=8)
        _wait_for_trace(tmp_path, 4)
        processes.kill(worker)
    if engine_forgets:
        for path in tmp_path.glob("jobs.sqlite*"):
            path.unlink()
    assert make.until(stores, job_id, "running").done < 12
    verbs.let_go_on(tmp_path, job_id)
    with processes.working(tmp_path):
        job = make.until(stores, job_id, "succeeded")
    told = Counter(_trace(tmp_path))
    assert set(told) == {f"{job_id} {number}" for number in range(1, 13)}
    assert told.total() <= 13, "the slice that was cut off may be done once more, no other"
    assert (job.attempts, job.done) == (2, 12)


def test_a_worker_that_is_told_to_stop_puts_its_job_back(stores: Stores, tmp_path: Path) -> None:
    with processes.working(tmp_path):
        job_id = make.job(stores, "hang")
        make.until(stores, job_id, "running")
        began = time.monotonic()
    assert time.monotonic() - began < STOPS_WITHIN_SECONDS * BUSY
    assert make.until(stores, job_id, "queued").worker is None


def test_an_intrusive_job_that_was_cut_off_asks_again(stores: Stores, tmp_path: Path) -> None:
    with processes.working(tmp_path) as worker:
        job_id = make.job(stores, "act", intrusive=True, seconds=30)
        _wait_for_trace(tmp_path, 1)
        processes.kill(worker)
    with processes.working(tmp_path):
        make.until(stores, job_id, "interrupted")
    assert _trace(tmp_path) == [f"{job_id} acted"]


@pytest.mark.parametrize("landed", [pytest.param(n, id=f"after-{n}") for n in (1, 6)])
def test_a_collection_that_was_killed_is_finished_and_nothing_is_doubled(
    stores: Stores, tmp_path: Path, landed: int
) -> None:
    slowly = answers(delay=0.3)
    paths = {
        "/ready": answers(b"OK"),
        "/metrics": answers(METRICS, delay=0.3),
        "/server_info": slowly,
        "/model_info": slowly,
        "/v1/loads": slowly,
    }
    with scripted_target(paths) as server:
        incident_id, target = make.incident(stores), make.target(stores, server.base_url)
        with processes.working(tmp_path) as worker:
            job_id, bundle_id = _request(stores, incident_id, target, probe="never")
            _wait_for_captures(stores, bundle_id, landed)
            processes.kill(worker)
        asked_before = Counter(server.paths())
        with processes.working(tmp_path):
            make.until(stores, job_id, "succeeded")
    _nothing_is_doubled(stores, bundle_id, Counter(server.paths()), asked_before)


def test_a_probe_that_was_cut_off_is_not_sent_again(stores: Stores, tmp_path: Path) -> None:
    with scripted_target({"/health_generate": answers(b"", delay=20.0)}) as server:
        incident_id, target = make.incident(stores), make.target(stores, server.base_url)
        with processes.working(tmp_path) as worker:
            job_id, bundle_id = _request(stores, incident_id, target, probe="always")
            until(lambda: "/health_generate" in server.paths())
            processes.kill(worker)
        with processes.working(tmp_path):
            make.until(stores, job_id, "succeeded")
    assert server.paths().count("/health_generate") == 1
    with reading(stores.engine) as session:
        [probe] = [one for one in captures_of(session, bundle_id) if one.name == "health_generate"]
    assert (probe.outcome, probe.detail) == ("error", "Sent; no answer was seen so far.")


def test_a_dump_whose_reading_was_killed_is_read_whole_and_no_row_is_doubled(
    stores: Stores, tmp_path: Path
) -> None:
    total = 20_000
    content = recorded.dump([recorded.request(one, tokens=2) for one in range(total)])
    taken = attaching.take_in(
        stores,
        stores.artifacts.put(content),
        Sent("crash.pkl", "a test"),
        incident_id=make.incident(stores),
        actor=make.MIRA,
        at=make.now(),
    )
    assert taken.dump_id is not None
    with processes.working(tmp_path) as worker:
        until(lambda: _rows(stores, taken.dump_id or 0))
        processes.kill(worker)
    assert 0 < _rows(stores, taken.dump_id) < total
    with processes.working(tmp_path), reading(stores.engine) as session:
        job_id = get_dump(session, taken.dump_id).job_id
        job = make.until(stores, job_id or 0, "succeeded")
    with reading(stores.engine) as session:
        dump = get_dump(session, taken.dump_id)
        events = [one.kind for one in session.exec(select(TimelineEvent))]
    assert (dump.state, dump.requests_total) == ("ready", total)
    assert _rows(stores, taken.dump_id) == total
    assert job.attempts == 2
    assert events == ["ArtifactAttached", "StepRequested", "DumpRead"]


def _rows(stores: Stores, dump_id: int) -> int:
    with reading(stores.engine) as session:
        return count_of(session, dump_id)


def _request(stores: Stores, incident_id: int, target: Target, *, probe: Probe) -> tuple[int, int]:
    """The numbers of the job and the bundle of a collection that was just asked for."""
    with writing(stores.engine) as session:
        job, bundle = request_bundle(
            session,
            stores,
            incident_id=incident_id,
            target=target,
            probe=probe,
            interval_seconds=1.0,
            actor=make.MIRA,
            at=make.now(),
        )
    assert job.id is not None
    assert bundle.id is not None
    return job.id, bundle.id


def _nothing_is_doubled(
    stores: Stores, bundle_id: int, asked: Counter[str], asked_before: Counter[str]
) -> None:
    with reading(stores.engine) as session:
        row = session.get_one(BundleRow, bundle_id)
        captures = captures_of(session, bundle_id)
        whole = load_bundle(session, stores.artifacts, bundle_id)
        events = [one.kind for one in session.exec(select(TimelineEvent))]
        artifacts = session.exec(select(Artifact)).all()
    assert row.state == "complete"
    assert [one.position for one in captures] == list(range(len(captures)))
    assert [one.body for one in whole.captures if one.name.startswith("metrics")] == [METRICS] * 2
    assert events == ["StepRequested", "BundleCollected"]
    assert [one.kind for one in artifacts] == ["bundle"]
    # Each capture was asked for once; what was in flight at the kill, at most once more.
    needed = Counter(one.path for one in captures if one.outcome != "not asked")
    assert all(count <= needed[path] + 1 for path, count in asked.items()), asked
    assert all(count <= needed[path] + 1 for path, count in asked_before.items()), asked_before


def _wait_for_captures(stores: Stores, bundle_id: int, count: int) -> None:
    def enough() -> bool:
        with reading(stores.engine) as session:
            return len(captures_of(session, bundle_id)) >= count

    until(enough)
