"""Replays beside other jobs: places of their own, and one at a time on each server."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.replay.options import Options
from app.errors import Conflict
from app.settings import Settings
from app.store import bundles, migrations, replays
from app.store.database import writing
from app.store.replays import NewReplay
from app.store.stores import Stores
from app.store.tables import Target
from tests.integration import make, processes
from tests.integration.replayed import QUICK, asked, clean_target, ended, file_of, job_of, line
from tests.replaying import ReplayTarget, replay_target
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    """Those of a console whose workers do one thing at a time, and one replay."""
    monkeypatch.setenv("INCIDENT_CONSOLE_COLLECT_CONCURRENCY", "1")
    monkeypatch.setenv("INCIDENT_CONSOLE_REPLAY_CONCURRENCY", "1")
    opened = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(opened.engine)
    yield opened
    opened.close()


def _new(stores: Stores, server: ReplayTarget, name: str) -> NewReplay:
    target = clean_target(stores, server.base_url, name)
    return NewReplay(make.incident(stores), target.id or 0)


def _cancel(stores: Stores, replay_id: int) -> None:
    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.cancel_replay(session, row, actor=make.MIRA, at=make.now())


def _bundle(stores: Stores, target: Target) -> int:
    """The number of the job that takes a bundle of a target, for an incident."""
    with writing(stores.engine) as session:
        job, _ = bundles.request_bundle(
            session,
            stores,
            incident_id=make.incident(stores),
            target=target,
            probe="never",
            interval_seconds=1.0,
            actor=make.MIRA,
            at=make.now(),
        )
    return job.id or 0


def test_no_bundle_waits_for_a_replay_and_replays_wait_for_each_other(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server, replay_target() as other, processes.working(tmp_path):
        first, _ = asked(stores, _new(stores, server, "a"), line(0, "hang"))
        until(server.seen)
        second, _ = asked(stores, _new(stores, other, "b"), line(0))
        make.until(stores, _bundle(stores, make.target(stores, other.base_url, "c")), "succeeded")
        assert job_of(stores, first).state == "running"
        assert job_of(stores, second).state == "queued"

        _cancel(stores, first)
        assert ended(stores, second).completed == 1


@pytest.mark.parametrize("same_row", [True, False], ids=["one target", "two names of a server"])
def test_of_two_that_ask_in_one_moment_one_is_told_who_is_at_work(
    any_stores: Stores, same_row: bool
) -> None:
    stores, url = any_stores, "http://127.0.0.1:9"
    targets = [clean_target(stores, url, name) for name in ("a", "b")]
    ids = [targets[0].id or 0, targets[0 if same_row else 1].id or 0]
    news = [_for(stores, one) for one in ids]
    barrier, told = threading.Barrier(2), list[str]()

    def ask(new: NewReplay) -> None:
        barrier.wait()
        try:
            with writing(stores.engine) as session:
                replays.request_replay(session, stores, new, actor=make.MIRA, at=make.now())
        except Conflict as refused:
            told.append(refused.detail)

    threads = [threading.Thread(target=ask, args=[new]) for new in news]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert len(told) == 1
    assert told[0] == (
        "Replay 1 is at work on the same target. Two at once would each measure the other."
        " Wait for it, or cancel it."
    ) or told[0].startswith("Replay 2 is at work")


def _for(stores: Stores, target_id: int) -> NewReplay:
    incident_id = make.incident(stores)
    artifact_id = file_of(stores, incident_id, [line(0)])
    return NewReplay(incident_id, target_id, artifact_id=artifact_id, options=QUICK)


def test_the_workers_of_two_machines_share_one_replay_of_a_server(
    any_stores: Stores, tmp_path: Path
) -> None:
    stores = any_stores
    url = stores.settings.database_url
    with (
        replay_target() as server,
        processes.working(tmp_path, url),
        processes.working(tmp_path, url),
    ):
        new = _new(stores, server, "a")
        lines = [line(n, at=n * 0.05) for n in range(40)]
        first, _ = asked(stores, new, *lines, options=Options())
        until(server.seen)
        again = clean_target(stores, server.base_url, "b")
        with pytest.raises(Conflict, match=f"Replay {first} is at work on the same target"):
            asked(stores, NewReplay(new.incident_id, again.id or 0), line(0))
        assert ended(stores, first).completed == 40
        assert len(server.seen()) == 40
