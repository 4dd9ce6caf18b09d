"""A target that goes away in the middle: what is sent after that, and what is said of the rest."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.clients.player import Played, play
from app.clients.target import TargetAddress
from app.domain.replay.died import Death
from app.domain.replay.limits import Limits
from app.domain.replay.options import Options
from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Sending
from app.domain.replay.tally import Tally
from app.settings import Settings
from app.store import migrations, replay_rows, replays
from app.store.database import reading
from app.store.replay_rows import Wanted
from app.store.replays import NewReplay
from app.store.stores import Stores
from app.web.replay_standing import standing
from app.web.replay_trials import trial_rows
from tests.integration import make, processes
from tests.integration.replayed import asked, clean_target, ended, line
from tests.integration.test_cli_replay import lines, replay
from tests.ports import free_port
from tests.replaying import NOT_RECORDED, PROGRAM, ReplayTarget, replay_target, sending
from tests.waiting import until

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 1.0
LIMITS = Limits(request_seconds=30, patience_seconds=PATIENCE_SECONDS)
LATER_SECONDS = 600.0  # when the rest is due; nobody waits for it


def played(
    url: str, *sendings: Sending, options: Options | None = None, limits: Limits = LIMITS
) -> tuple[Played, list[Outcome]]:
    outcomes: list[Outcome] = []
    chosen = options or Options()
    done = play(sendings, TargetAddress(url), chosen, take=outcomes.extend, limits=limits)
    return done, sorted(outcomes, key=lambda one: one.index)


def death_of(done: Played, outcomes: list[Outcome], planned: int) -> Death | None:
    tally = Tally(planned)
    for one in outcomes:
        tally.see(one, NOT_RECORDED)
    return tally.trial(up_before=True, absences=done.absences).died


@contextmanager
def again_at(port: int, *, after_seconds: float) -> Iterator[ReplayTarget]:
    """A target that a supervisor starts at *port* once the first one was away for so long."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        started.append(subprocess.Popen([sys.executable, str(PROGRAM), str(port)]))

    timer = threading.Timer(after_seconds, start)

    def supervise(dead: "subprocess.Popen[bytes]") -> None:
        dead.wait()
        timer.start()

    target = ReplayTarget(port, subprocess.Popen([sys.executable, str(PROGRAM), str(port), "5"]))
    watch = threading.Thread(target=supervise, args=[target.process])
    try:
        until(target.listens)
        watch.start()
        yield target
    finally:
        target.process.kill()
        watch.join()
        timer.join()
        for one in started:
            one.kill()
            one.wait()


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_due_after_a_target_went_away_for_good_is_not_sent(processes: int) -> None:
    early = [sending(n, due=0.05 * n) for n in range(10)]
    late = [sending(n, due=LATER_SECONDS + n) for n in range(10, 60)]
    limits = replace(LIMITS, processes=processes)
    with replay_target(dies_after=6) as target:
        since = time.monotonic()
        done, outcomes = played(target.base_url, *early, *late, limits=limits)
        took = time.monotonic() - since
    found = death_of(done, outcomes, 60)

    assert took < LATER_SECONDS / 10
    assert [one.index for one in outcomes] == list(range(60))
    assert {one.error for one in outcomes[10:]} == {"not-sent"}
    assert {one.says for one in outcomes[10:]} == {
        "The target went away and did not come back in 1 s."
    }
    assert {one.sent_at for one in outcomes[10:]} == {None}
    assert not done.stopped
    assert done.absences[0].refused
    assert found is not None
    assert (found.last_sent, found.in_flight, found.certain) == (5, (5,), True)


def test_nothing_is_used_up_on_a_target_that_is_away_in_a_closed_loop() -> None:
    options = Options(mode="flat-out", parallel=4)
    with replay_target(dies_after=6) as target:
        sendings = [sending(n) for n in range(200)]
        done, outcomes = played(target.base_url, *sendings, options=options)
    unsent = [one for one in outcomes if one.error == "not-sent"]
    found = death_of(done, outcomes, 200)

    assert len(unsent) >= 180, "only what was in flight is lost"
    assert found is not None
    assert found.certain, "knocking tells that nothing listens, even if no request does"


def test_a_target_that_is_started_again_in_time_is_sent_the_rest_and_that_is_told() -> None:
    options = Options(mode="closed", parallel=1)
    limits = replace(LIMITS, patience_seconds=60)
    with again_at(free_port(), after_seconds=1.0) as target:
        sendings = [sending(n) for n in range(12)]
        done, outcomes = played(target.base_url, *sendings, options=options, limits=limits)
        rest = len(target.seen())
    found = death_of(done, outcomes, 12)

    assert [one.error for one in outcomes] == [None] * 4 + ["connection-reset"] + [None] * 7
    assert rest == 7
    [absence] = done.absences
    assert absence.back_at is not None
    assert absence.refused
    assert found is not None
    assert (found.last_sent, found.certain, found.restarted) == (4, True, True)
    assert "restarted: nothing had listened in between" in found.says


@pytest.mark.parametrize("kind", ["overloaded", "reset", "cut"])
def test_failures_of_a_target_that_is_there_stop_nothing(kind: str) -> None:
    kinds = [kind] * 20 + ["cumulative"]
    sendings = [sending(n, one, due=0.1 * n) for n, one in enumerate(kinds)]
    with replay_target() as target:
        limits = replace(LIMITS, patience_seconds=0.2)
        done, outcomes = played(target.base_url, *sendings, limits=limits)
        came = len(target.seen())

    assert came == len(kinds)
    assert done.absences == ()
    assert outcomes[-1].error is None


def test_a_stream_that_lives_on_is_read_to_its_end_though_nothing_listens_any_more() -> None:
    with replay_target() as target:
        slow = sending(0, "leaves")
        rest = [sending(n, due=0.8 + n) for n in range(1, 60)]
        limits = replace(LIMITS, patience_seconds=0.5)
        done, outcomes = played(target.base_url, slow, *rest, limits=limits)

    assert outcomes[0].error is None
    assert outcomes[1].error == "connection-refused"
    assert outcomes[-1].error == "not-sent"
    assert not done.stopped


def test_the_command_line_says_how_many_were_not_sent_and_why(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative"] * 8))
    flags = ("--yes", "--closed-loop", "--parallel", "1")
    with replay_target(dies_after=3) as target:
        status, text, _ = replay(tmp_path, path, "--base-url", target.base_url, *flags)

    assert status == 0
    assert text.splitlines()[0] == "crash: reproduced (supported)"
    assert "The target went away after request 2, while 1 was in flight." in text
    assert "5 of 8 were not sent: The target went away and did not come back in 10 s." in text


def test_a_replay_in_the_console_says_how_many_were_not_sent(tmp_path: Path) -> None:
    stores = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(stores.engine)
    with replay_target(dies_after=4) as server, processes.working(tmp_path):
        target = clean_target(stores, server.base_url, "clean-a")
        new = NewReplay(make.incident(stores), target.id or 0)
        one_by_one = Options(mode="closed", parallel=1)
        replay_id, _ = asked(stores, new, *(line(n) for n in range(9)), options=one_by_one)
        done = ended(stores, replay_id)
    with reading(stores.engine) as session:
        [trial] = replays.trials_of(session, replay_id)
        rows = replay_rows.outcomes_of(session, replay_id, Wanted(state="not sent")).rows
        told = [one.outcome for one in trial_rows(standing(session, replay_id))]
    stores.close()

    assert (done.verdict, done.sent) == ("reproduced", 4)
    assert trial.died is not None
    assert (trial.died["last_sent"], trial.died["in_flight"]) == (3, [3])
    assert trial.errors["not-sent"] == 5
    assert [one.position for one in rows] == [4, 5, 6, 7, 8]
    assert {one.says for one in rows} == {"The target went away and did not come back in 10 s."}
    assert told == ["went away after request 3, 5 not sent"]
