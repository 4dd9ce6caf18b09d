"""What gaps in a trial change of what it says: the target was away, the replay was cut off."""

from typing import Any

import pytest

from app.domain.replay.died import Absence, death
from app.domain.replay.latency import LEAST_PAIRS
from app.domain.replay.readings import reading
from app.domain.replay.symptoms import Question, Sameness, sighting
from app.domain.replay.tally import Trial
from app.domain.replay.verdict import measured_noise
from tests.replays import BEGAN, outcome, trial_of

SAME = Sameness(model=True, topology=True, accelerator=True)
LOST = (outcome(0), outcome(1, "connection-reset"))


def slow(**around: Any) -> Trial:
    """A trial that took twice as long as it is recorded."""
    return trial_of(*(outcome(n, e2e_seconds=1.0) for n in range(2 * LEAST_PAIRS)), **around)


@pytest.mark.parametrize(
    ("back_at", "refused", "after", "told"),
    [
        (None, True, "down", (True, False)),
        (None, True, "up", (True, False)),
        (None, False, "down", (True, False)),
        (None, False, "unknown", (False, False)),
        (BEGAN + 9.0, True, "up", (True, True)),
        (BEGAN + 9.0, False, "up", None),
    ],
    ids=[
        "for good", "up by the look", "by the network", "unsure", "restarted", "network",
    ],
)  # fmt: skip
def test_knocking_tells_what_no_request_does(
    back_at: float | None, refused: bool, after: str, told: tuple[bool, bool] | None
) -> None:
    absence = Absence(since=BEGAN + 2.0, back_at=back_at, refused=refused)
    found = death(LOST, up_before=True, after=after, absences=[absence])  # type: ignore[arg-type]

    assert (None if found is None else (found.certain, found.restarted)) == told


def test_a_restart_between_two_requests_is_said_with_its_time() -> None:
    absence = Absence(since=BEGAN + 2.0, back_at=BEGAN + 4.5, refused=True)
    found = death([*LOST, outcome(20)], up_before=True, after="up", absences=[absence])

    assert found is not None
    assert found.says == (
        "The target went away after request 1, while 1 was in flight. It was back 3.0 s later,"
        " restarted: nothing had listened in between."
    )


def test_the_rest_that_was_not_sent_to_a_dead_target_is_put_down_to_that() -> None:
    unsent = [outcome(n, "not-sent", sent_at=None) for n in range(2, 9)]
    trial = trial_of(*LOST, *unsent, up_before=True, after="down")
    crash, output = sighting(trial, Question("crash")), sighting(trial, Question("output"))

    assert trial.died is not None
    assert (trial.sent, trial.planned) == (2, 9)
    assert (crash.state, crash.why) == ("shown", trial.died.says)
    assert output.state == "inconclusive"
    assert reading("not-sent", died=True, as_recorded=True).startswith("the target was gone")
    assert reading("not-sent", died=False, as_recorded=True).startswith("the replay was stopped")


def test_the_times_of_a_trial_that_was_gone_on_with_are_not_compared() -> None:
    question = Question("latency", sameness=SAME)
    whole, resumed = slow(after="up"), slow(after="up", resumed=1)

    assert sighting(whole, question).state == "shown"
    found = sighting(resumed, question)
    assert found.state == "inconclusive"
    assert "cut off and gone on with" in found.why
    assert measured_noise([whole, whole]) is not None
    assert measured_noise([whole, resumed]) is None, "nor do they measure the noise"


def test_the_times_of_a_target_that_was_restarted_in_the_middle_are_not_compared() -> None:
    lost = outcome(50, "connection-reset")
    after = [outcome(n, e2e_seconds=1.0) for n in range(60, 65)]
    before = [outcome(n, e2e_seconds=1.0) for n in range(2 * LEAST_PAIRS)]
    absence = Absence(BEGAN + 51.0, BEGAN + 55.0, refused=True)
    trial = trial_of(*before, lost, *after, after="up", absences=[absence])

    found = sighting(trial, Question("latency", sameness=SAME))
    assert (found.state, found.why) == (
        "inconclusive",
        "Latency is not compared: the target went away in the middle and came back.",
    )
