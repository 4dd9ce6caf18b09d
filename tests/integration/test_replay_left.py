"""What a replay leaves when something breaks: nothing that was measured is lost, or in silence."""

import os
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from threading import Event

import orjson
import pytest
from sqlalchemy import text
from sqlmodel import select

from app.clients.journal import Journal, journal_of, write_down
from app.domain.replay.options import Options
from app.domain.replay.planned import Recorded
from app.errors import Conflict, NoSpace
from app.jobs.replay_journals import take_in_left
from app.jobs.replay_landing import Landing
from app.jobs.work import Work
from app.settings import Settings
from app.store import attempts, migrations, replay_progress, replay_rows, replays
from app.store.attempts import Attempt
from app.store.database import reading, writing
from app.store.replays import NewReplay
from app.store.stores import Stores
from app.store.tables import ReplayTrial, Worker
from app.web.replay_standing import replay_told, standing
from tests.integration import make, processes
from tests.integration.replayed import asked, clean_target, ended, job_of, line, replay_at
from tests.integration.test_cli_replay import command, lines
from tests.integration.test_player import _children
from tests.replaying import ReplayTarget, replay_target
from tests.replays import outcome
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

REQUESTS = 60
FULL_BYTES = 4096


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(opened.engine)
    yield opened
    opened.close()


def _asked(stores: Stores, server: ReplayTarget, *, trials: int = 1, apart: float = 0.05) -> int:
    """The number of a replay that is waiting."""
    target = clean_target(stores, server.base_url, "clean-a")
    new = NewReplay(make.incident(stores), target.id or 0, trials=trials)
    lines = [line(n, at=n * apart) for n in range(REQUESTS)]
    return asked(stores, new, *lines, options=Options())[0]


def _rows(stores: Stores, replay_id: int) -> dict[int, tuple[str, str | None]]:
    """State of each outcome, and how its request was recorded."""
    with reading(stores.engine) as session:
        found = replay_rows.outcomes_of(session, replay_id, limit=10 * REQUESTS).rows
        return {one.position: (one.state, one.recorded_state) for one in found}


def _trial(stores: Stores, replay_id: int) -> ReplayTrial:
    with reading(stores.engine) as session:
        return replays.trials_of(session, replay_id)[0]


def _resume(stores: Stores, replay_id: int) -> None:
    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.resume_replay(session, stores, row, actor=make.MIRA, at=make.now())


def _cancel(stores: Stores, replay_id: int) -> None:
    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.cancel_replay(session, row, actor=make.MIRA, at=make.now())


def _sending(worker_pid: int) -> list[int]:
    """The processes of a worker that send."""
    return [
        pid
        for pid in _children(worker_pid)
        if b"play_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def _killed(stores: Stores, folder: Path, server: ReplayTarget) -> tuple[int, set[int]]:
    """A replay whose worker was killed, and what it had measured; the journal is elsewhere now."""
    with processes.working(folder) as worker:
        replay_id = _asked(stores, server)
        until(lambda: len(_rows(stores, replay_id)) >= 5)
        processes.kill(worker)
    path = journal_of(folder, _trial(stores, replay_id).id or 0)
    measured = {orjson.loads(one)[0]["index"] for one in path.read_bytes().split()}
    path.rename(folder / "elsewhere")
    return replay_id, measured


def test_what_lies_on_another_machine_is_taken_in_once_that_is_back(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server:
        replay_id, measured = _killed(stores, tmp_path, server)
    kept = set(_rows(stores, replay_id))
    path = journal_of(tmp_path, _trial(stores, replay_id).id or 0)
    with processes.working(tmp_path):
        ended(stores, replay_id, "interrupted")
        assert set(_rows(stores, replay_id)) == kept
        (tmp_path / "elsewhere").rename(path)
        until(lambda: not path.exists())

    assert _rows(stores, replay_id) == dict.fromkeys(measured, ("completed", "finished"))
    assert replay_at(stores, replay_id).completed == len(measured) >= len(kept)


def test_what_is_taken_in_late_changes_nothing_that_came_to_its_end(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server:
        replay_id, _ = _killed(stores, tmp_path, server)
        path = journal_of(tmp_path, _trial(stores, replay_id).id or 0)
        with processes.working(tmp_path):
            ended(stores, replay_id, "interrupted")
            _resume(stores, replay_id)
            done = ended(stores, replay_id)
            (tmp_path / "elsewhere").rename(path)
            until(lambda: not path.exists())

    assert replay_at(stores, replay_id).version == done.version
    assert len(_rows(stores, replay_id)) == REQUESTS


def test_a_process_that_sends_and_is_killed_fails_the_replay_and_loses_nothing(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server:
        with processes.working(tmp_path) as worker:
            replay_id = _asked(stores, server)
            until(lambda: len(_rows(stores, replay_id)) >= 5)
            [pid] = _sending(worker.pid)
            os.kill(pid, signal.SIGKILL)
            failed = ended(stores, replay_id, "failed")
            arrived = until(server.seen_at_last)
            measured = {
                n for n, (state, _) in _rows(stores, replay_id).items() if state != "not sent"
            }
            assert "A process that was sending was ended: signal 9." in failed.says
            assert arrived - len(measured) <= 2 * BUSY, "what it had measured is there"
            assert failed.completed == len(measured)
            _resume(stores, replay_id)
            done = ended(stores, replay_id)
        times = Counter(one["body"]["rid"] for one in server.seen())

    assert (done.state, done.completed) == ("done", REQUESTS)
    assert sum(count > 1 for count in times.values()) <= arrived - len(measured)


def test_on_a_full_disk_outcomes_wait_until_they_can_be_written(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server, processes.working(tmp_path) as worker:
        replay_id = _asked(stores, server)
        until(lambda: len(_rows(stores, replay_id)) >= 5)
        full = [worker.pid, *_sending(worker.pid)]
        _, most = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
        for pid in full:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL_BYTES, most))
        kept = len(_rows(stores, replay_id))
        until(lambda: len(server.seen()) == REQUESTS)
        time.sleep(1.0)  # that nothing is written cannot be waited for
        assert len(_rows(stores, replay_id)) <= kept + BUSY
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (most, most))
        done = ended(stores, replay_id)

    assert (done.state, done.completed) == ("done", REQUESTS)
    assert len(_rows(stores, replay_id)) == REQUESTS


def test_a_store_that_takes_nothing_for_long_stops_the_sending(stores: Stores) -> None:
    with replay_target() as server:
        replay_id = _asked(stores, server)
    job = job_of(stores, replay_id)
    attempt = Attempt(job.id or 0, job.key)
    with writing(stores.engine) as session:
        attempts.claim(session, attempt, worker="w", places={"replays": 1}, at=make.now())
    trial = replay_progress.trial_of(stores, attempt, replay_id, 1, "A")
    begun = replay_progress.take_in(stores, trial.id or 0, (), attempt=attempt)
    assert begun is not None
    work = Work(stores, job, attempt, Event())
    _rename(stores, "replay_outcome", "away")

    with Landing(work, begun, patience_seconds=0.3) as landing:
        landing.take([outcome(0), outcome(1)])
        until(landing.is_stopping)
        _rename(stores, "away", "replay_outcome")

    with pytest.raises(NoSpace, match=r"took no outcomes for 0\.3 s"):
        landing.check()

    assert set(_rows(stores, replay_id)) == {0, 1}, "they were written as soon as that was possible"


def test_a_line_that_the_disk_cut_off_spoils_no_other(tmp_path: Path) -> None:
    recorded = orjson.dumps(asdict(Recorded(state="finished")))
    with Journal(journal_of(tmp_path, 1)) as journal:
        write_down(journal.descriptor, outcome(0), recorded)
        os.write(journal.descriptor, b'\n[{"index": 1, "ri')
        write_down(journal.descriptor, outcome(2), recorded)
        found = list(journal.left())

    assert [one.index for one, _ in found] == [0, 2]
    assert {one.state for _, one in found} == {"finished"}


def test_a_journal_is_held_by_one_alone(stores: Stores, tmp_path: Path) -> None:
    path = journal_of(tmp_path, 1)
    with Journal(path) as journal:
        journal.left()
        with pytest.raises(Conflict, match="still being ended"):
            Journal(path)
        take_in_left(stores)
        assert path.exists(), "it is being written"
    take_in_left(stores)
    assert path.exists(), "of a trial that is not known here"


def test_a_cancel_while_the_target_is_looked_at_sends_nothing(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server, processes.working(tmp_path):
        replay_id = _asked(stores, server)
        until(lambda: "a bundle of clean-a" in job_of(stores, replay_id).says)
        _cancel(stores, replay_id)
        cancelled = ended(stores, replay_id, "cancelled")
        assert (cancelled.state, server.seen()) == ("cancelled", [])
        _resume(stores, replay_id)
        assert ended(stores, replay_id).completed == REQUESTS


def test_a_cancel_between_two_trials_keeps_the_first(stores: Stores, tmp_path: Path) -> None:
    with replay_target() as server, processes.working(tmp_path):
        replay_id = _asked(stores, server, trials=2, apart=0.01)
        until(lambda: "Trial 1 is over" in job_of(stores, replay_id).says)
        _cancel(stores, replay_id)
        cancelled = ended(stores, replay_id, "cancelled")
        assert cancelled.completed == REQUESTS
        assert len(server.seen()) == REQUESTS
        _resume(stores, replay_id)
        done = ended(stores, replay_id)
        assert (done.state, done.completed) == ("done", 2 * REQUESTS)
        assert len(server.seen()) == 2 * REQUESTS


def _rename(stores: Stores, table: str, to: str) -> None:
    with stores.engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE {table} RENAME TO {to}"))


def test_a_full_disk_stops_the_command_line_and_everything_measured_is_told(tmp_path: Path) -> None:
    path, out = tmp_path / "requests.jsonl", tmp_path / "out.jsonl"
    path.write_text(lines(["cumulative"] * 200, apart_seconds=0.05))
    with replay_target() as server:
        flags = ("--base-url", server.base_url, "--yes", "--json", "--out", out)
        with subprocess.Popen(
            **command(tmp_path, path, *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            until(lambda: out.exists() and out.stat().st_size > 0)
            size = out.stat().st_size
            _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + 100, most))
            told, errors = process.communicate(timeout=120)
        came = until(server.seen_at_last)
    whole = [orjson.loads(one) for one in out.read_bytes().splitlines()]

    assert process.returncode == 1
    assert "could not be written any more" in errors
    assert came < 200
    assert orjson.loads(told)["sent"] >= came - 2 * BUSY
    assert len(whole) < came, "each line is whole"


def test_the_page_says_when_the_last_outcomes_lie_where_nobody_is_heard(
    stores: Stores, tmp_path: Path
) -> None:
    with replay_target() as server:
        replay_id, _ = _killed(stores, tmp_path, server)
        with processes.working(tmp_path):
            ended(stores, replay_id, "interrupted")
    with reading(stores.engine) as session:
        heard = replay_told(standing(session, replay_id), make.now()).reason
    with writing(stores.engine) as session:
        for worker in session.exec(select(Worker)):
            session.delete(worker)
    with reading(stores.engine) as session:
        unheard = replay_told(standing(session, replay_id), make.now()).reason

    assert "Its worker is not heard." not in (heard or "")
    assert unheard is not None
    assert "those requests are sent again" in unheard
