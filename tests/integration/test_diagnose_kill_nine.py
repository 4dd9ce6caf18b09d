"""kill -9 in the middle of a diagnostic: nothing is triggered twice, nothing is lost."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from app.protocol.messages import Coredump
from app.settings import Settings
from app.store import jobs, migrations
from app.store.database import writing
from app.store.stores import Stores
from tests.integration import diagnosing, make, processes
from tests.integration.agent_double import Asked, Double, agent_double
from tests.integration.diagnosing import TP0, TP1, Dumping
from tests.waiting import until

pytestmark = pytest.mark.slow

TRIGGER = "POST /coredumps"


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """The data folder that a worker process works on, as seen from another process."""
    opened = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(opened.engine)
    yield opened
    opened.close()


@pytest.fixture
def double() -> Iterator[Double]:
    with agent_double(Double()) as running:
        yield running


def _dump(stores: Stores, double: Double, *process_ids: str) -> int:
    host = diagnosing.host(stores, double, "gpu-14", diagnosing.server())
    given = {"process_ids": process_ids or [TP0], "host_ids": [host.id], "confirm": "gpu-14"}
    return diagnosing.press(stores, diagnosing.incident(stores), "coredump", **given)


def test_a_trigger_that_was_cut_off_is_asked_about_and_never_sent_again(
    stores: Stores, tmp_path: Path, double: Double
) -> None:
    dumping, killed = Dumping(double, "complete", data=b"\x7fELF"), Event()

    def slowly(asked: Asked) -> Coredump:
        told = dumping.begin(asked)
        killed.wait(100)
        return told

    double.says[TRIGGER] = slowly
    with processes.working(tmp_path) as worker:
        diagnostic_id = _dump(stores, double)
        until(lambda: double.times(TRIGGER))
        processes.kill(worker)
    killed.set()
    with processes.working(tmp_path):
        row = diagnosing.ended(stores, diagnostic_id)
        [item] = diagnosing.items(stores, diagnostic_id)
        assert (row.state, item.state) == ("interrupted", "asked")
        _resume(stores, row.job_id)
        make.until(stores, row.job_id, "succeeded")
    [item] = diagnosing.items(stores, diagnostic_id)
    assert (item.state, double.times(TRIGGER)) == ("complete", 1)
    assert item.artifact_id is not None


def test_a_trigger_that_the_agent_knows_nothing_of_is_told_as_unknown(
    stores: Stores, tmp_path: Path, double: Double
) -> None:
    dumping, killed = Dumping(double, "complete", data=b"\x7fELF"), Event()

    def never_begun(asked: Asked) -> tuple[int, dict[str, str]]:
        killed.wait(100)
        return 502, {"error": "bad-gateway", "detail": "gone"}

    double.says[TRIGGER] = never_begun
    with processes.working(tmp_path) as worker:
        diagnostic_id = _dump(stores, double)
        until(lambda: double.times(TRIGGER))
        processes.kill(worker)
    killed.set()
    with processes.working(tmp_path):
        row = diagnosing.ended(stores, diagnostic_id)
        _resume(stores, row.job_id)
        make.until(stores, row.job_id, "succeeded")
    [item] = diagnosing.items(stores, diagnostic_id)
    assert (item.state, double.times(TRIGGER)) == ("refused", 1)
    assert "not known whether" in item.says
    assert dumping.begun == {}


def test_watching_a_coredump_goes_on_without_anybody_s_consent(
    stores: Stores, tmp_path: Path, double: Double
) -> None:
    dumping = Dumping(double, "growing", data=b"\x7fELF" * 1000)
    with processes.working(tmp_path) as worker:
        diagnostic_id = _dump(stores, double)
        until(lambda: [one.state for one in diagnosing.items(stores, diagnostic_id)] == ["growing"])
        processes.kill(worker)
    dumping.states = ["complete"]
    with processes.working(tmp_path):
        row = diagnosing.ended(stores, diagnostic_id)
    [item] = diagnosing.items(stores, diagnostic_id)
    assert (row.state, item.state, double.times(TRIGGER)) == ("done", "complete", 1)
    assert stores.artifacts.verify(item.detail["sha256"])


def test_the_next_rank_is_not_begun_after_a_crash_unless_somebody_asks(
    stores: Stores, tmp_path: Path, double: Double
) -> None:
    dumping = Dumping(double, "growing", data=b"\x7fELF" * 1000)
    with processes.working(tmp_path) as worker:
        diagnostic_id = _dump(stores, double, TP0, TP1)
        until(lambda: [one.state for one in diagnosing.items(stores, diagnostic_id)] == ["growing"])
        processes.kill(worker)
    dumping.states = ["complete"]
    with processes.working(tmp_path):
        row = diagnosing.ended(stores, diagnostic_id)
        assert (row.state, double.times(TRIGGER)) == ("interrupted", 1)
        _resume(stores, row.job_id)
        make.until(stores, row.job_id, "succeeded")
    states = [one.state for one in diagnosing.items(stores, diagnostic_id)]
    assert (states, double.times(TRIGGER)) == (["complete", "complete"], 2)


def _resume(stores: Stores, job_id: int) -> None:
    with writing(stores.engine) as session:
        job = jobs.get_job(session, job_id)
        jobs.request_resume(session, stores.outbox, job, make.MIRA, make.now())
