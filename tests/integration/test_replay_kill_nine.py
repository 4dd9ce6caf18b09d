"""kill -9 in the middle of a replay: what was measured is there, and nothing goes on by itself."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.replay.options import Options
from app.settings import Settings
from app.store import migrations, replay_rows, replays
from app.store.database import reading, writing
from app.store.replays import NewReplay
from app.store.stores import Stores
from tests.integration import make, processes
from tests.integration.replayed import asked, clean_target, ended, job_of, line
from tests.replaying import ReplayTarget, replay_target
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

REQUESTS = 80


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """The data folder that a worker process works on, as seen from another process."""
    opened = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(opened.engine)
    yield opened
    opened.close()


def _kept(stores: Stores, replay_id: int) -> set[int]:
    with reading(stores.engine) as session:
        return replay_rows.done_indexes(session, replay_id, 1)


def _measured(folder: Path) -> set[int]:
    """The indexes of what is in its journal."""
    return {int(one) for one in re.findall(r'"index":(\d+)', _journal(folder).read_text())}


def _states(stores: Stores, replay_id: int) -> list[str]:
    with reading(stores.engine) as session:
        return [one.state for one in replays.trials_of(session, replay_id)]


def _journal(folder: Path) -> Path:
    return folder / "replays/trial-1.jsonl"


def _killed_in_the_middle(stores: Stores, folder: Path, server: ReplayTarget) -> int:
    """A replay whose worker was killed once 15 outcomes were written."""
    target = clean_target(stores, server.base_url, "clean-a")
    new = NewReplay(make.incident(stores), target.id or 0)
    lines = [line(n, at=n * 0.05) for n in range(REQUESTS)]
    with processes.working(folder, stores.settings.database_url) as worker:
        replay_id, _ = asked(stores, new, *lines, options=Options())
        until(lambda: len(_kept(stores, replay_id)) >= 15)
        processes.kill(worker)
    return replay_id


def _resume(stores: Stores, replay_id: int) -> None:
    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.resume_replay(session, stores, row, actor=make.MIRA, at=make.now())


def test_a_killed_replay_is_interrupted_and_a_person_has_the_rest_sent(
    any_stores: Stores, tmp_path: Path
) -> None:
    stores = any_stores
    with replay_target() as server:
        replay_id = _killed_in_the_middle(stores, tmp_path, server)
        arrived, kept = until(server.seen_at_last), _kept(stores, replay_id)
        measured = _measured(tmp_path)
        assert 15 <= len(kept) < REQUESTS
        assert arrived - len(kept) <= 4 * BUSY, "at most what was not a fifth of a second old"

        with processes.working(tmp_path, stores.settings.database_url):
            replay = ended(stores, replay_id, "interrupted")
            assert (replay.state, replay.verdict) == ("interrupted", None)
            assert replay.completed == len(kept)
            assert server.seen_at_last() == arrived, "resume is not consent"
            _resume(stores, replay_id)
            replay = ended(stores, replay_id)
        times = Counter(one["body"]["rid"] for one in server.seen())

    with reading(stores.engine) as session:
        [trial] = replays.trials_of(session, replay_id)
    assert trial.bundle_during_id is not None
    assert (replay.state, replay.completed) == ("done", REQUESTS)
    assert (job_of(stores, replay_id).attempts, len(times)) == (2, REQUESTS)
    again = {int(rid.rpartition("-")[2]) for rid, count in times.items() if count > 1}
    assert kept <= measured
    assert again & measured == set(), "what was measured is not sent again"
    assert not _journal(tmp_path).exists()


def test_a_worker_that_is_told_to_stop_leaves_it_to_a_person(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server:
        target = clean_target(stores, server.base_url, "clean-a")
        new = NewReplay(make.incident(stores), target.id or 0)
        lines = [line(n, at=n * 0.05) for n in range(REQUESTS)]
        with processes.working(tmp_path):
            replay_id, _ = asked(stores, new, *lines, options=Options())
            until(lambda: len(_kept(stores, replay_id)) >= 5)
        replay = ended(stores, replay_id, "interrupted")
        arrived = until(server.seen_at_last)

    assert replay.state == "interrupted"
    assert arrived - replay.completed <= 2 * BUSY, "what was in flight was broken off and is told"


def test_others_that_come_between_two_trials_stop_the_rest(stores: Stores, tmp_path: Path) -> None:
    with replay_target() as server, processes.working(tmp_path):
        target = clean_target(stores, server.base_url, "clean-a")
        new = NewReplay(make.incident(stores), target.id or 0, trials=3)
        lines = [line(n, "cumulative 0.2") for n in range(4)]
        replay_id, _ = asked(stores, new, *lines)
        until(lambda: "done" in _states(stores, replay_id))  # and a bundle comes next
        server.get("/__running/5")
        replay = ended(stores, replay_id)
        arrived = len(server.seen())

    with reading(stores.engine) as session:
        trials = replays.trials_of(session, replay_id)
    assert (replay.state, replay.verdict, arrived) == ("done", "not reproduced", 4)
    assert [one.state for one in trials] == ["done", "waiting"]
    assert "serving 5 requests of others" in trials[1].says


def test_what_sends_ends_with_the_worker(stores: Stores, tmp_path: Path) -> None:
    with replay_target() as server:
        target = clean_target(stores, server.base_url, "clean-a")
        new = NewReplay(make.incident(stores), target.id or 0)
        lines = [line(n, at=n * 0.05) for n in range(REQUESTS)]
        with processes.working(tmp_path) as worker:
            asked(stores, new, *lines, options=Options())
            until(lambda: len(server.seen()) >= 5)
            processes.kill(worker)
        assert until(server.seen_at_last) < REQUESTS
