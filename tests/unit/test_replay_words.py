"""Titles of replays: what they say, and that none says more than is known."""

from typing import Any

import pytest

from app.store.tables import Replay, ReplayTrial
from app.web.replay_words import finding
from tests.make import NOON


def _replay(**told: Any) -> Replay:
    usual: dict[str, Any] = {
        "id": 5, "incident_id": 1, "artifact_id": 1, "target_id": 1, "options": {}, "sent": 500,
        "total": 1000, "symptom": "crash", "symptom_by": "rules", "asked_by": "lin",
        "asked_at": NOON, "started_at": NOON, "confirmed": [],
    }  # fmt: skip
    return Replay(**{**usual, **told})


def _died(number: int, last_sent: int) -> ReplayTrial:
    died = {"last_sent": last_sent, "in_flight": [last_sent], "certain": True}
    return ReplayTrial(replay_id=5, number=number, target_id=1, errors={}, died=died)


@pytest.mark.parametrize(
    ("told", "deaths", "says"),
    [
        pytest.param(
            {"verdict": "reproduced"}, [343, 343], "debug-1 went away after request 343, each time",
            id="each-time-after-the-same-request",
        ),
        pytest.param(
            {"verdict": "reproduced"}, [343, 12], "debug-1 went away, each time",
            id="each-time-after-another-request",
        ),
        pytest.param(
            {"verdict": "reproduced"}, [343], "debug-1 went away after request 343", id="once",
        ),
        pytest.param(
            {"verdict": "reproduced sometimes"}, [343],
            "debug-1 went away after request 343, not each time", id="sometimes",
        ),
        pytest.param(
            {"verdict": "reproduced", "symptom": "hang"}, [], "The hang came back on debug-1",
            id="a-hang",
        ),
        pytest.param(
            {"verdict": "not reproduced"}, [], "It did not come back: 500 requests to debug-1",
            id="not-reproduced",
        ),
        pytest.param(
            {"verdict": "inconclusive"}, [], "Whether it comes back on debug-1 stays open",
            id="inconclusive",
        ),
    ],
)  # fmt: skip
def test_the_title_of_a_replay_that_is_over_is_its_finding(
    told: dict[str, Any], deaths: list[int], says: str
) -> None:
    trials = [_died(number, last) for number, last in enumerate(deaths, 1)]

    assert finding(_replay(state="done", **told), ["debug-1"], trials) == says


@pytest.mark.parametrize(
    ("died", "says"),
    [
        pytest.param({}, "Sending 1,000 requests to good and bad", id="nobody"),
        pytest.param({"certain": True}, "bad went away after request 7", id="one"),
        pytest.param({"certain": False}, "bad seems to have gone away after request 7", id="maybe"),
    ],
)
def test_the_title_of_a_replay_at_work_holds_no_count_that_changes_under_it(
    died: dict[str, Any], says: str
) -> None:
    told = {"last_sent": 7, "in_flight": [7], **died} if died else None
    row = ReplayTrial(replay_id=5, number=2, side="B", target_id=2, errors={}, died=told)

    assert finding(_replay(state="running"), ["good", "bad"], [row]) == says


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        pytest.param("not reproduced", "reproduced", "bad shows it, good does not", id="one"),
        pytest.param("reproduced", "reproduced sometimes", "good and bad both show it", id="both"),
        pytest.param(
            "not reproduced", "not reproduced", "Neither good nor bad shows it", id="none",
        ),
        pytest.param(
            "inconclusive", "reproduced", "bad shows it; of the other side nothing is known",
            id="one-and-unknown",
        ),
        pytest.param(
            "inconclusive", "not reproduced", "Whether the two sides differ stays open",
            id="unknown",
        ),
    ],
)  # fmt: skip
def test_the_title_of_two_sides_sets_them_apart(a: str, b: str, says: str) -> None:
    summary = {"A": {"verdict": a}, "B": {"verdict": b}}
    replay = _replay(state="done", verdict="reproduced", other_target_id=2, summary=summary)

    assert finding(replay, ["good", "bad"]) == says


@pytest.mark.parametrize(
    ("told", "says"),
    [
        pytest.param({"state": "interrupted"}, "cut off after 500 of 1,000", id="in-the-middle"),
        pytest.param(
            {"state": "cancelled", "sent": 0}, "was cancelled before the first answer",
            id="what-was-sent-is-not-known",
        ),
        pytest.param(
            {"state": "refused", "sent": 0, "started_at": None},
            "was held back before anything was sent", id="nothing-was-sent",
        ),
    ],
)  # fmt: skip
def test_the_title_of_a_replay_that_stopped_says_how_far_it_came(
    told: dict[str, Any], says: str
) -> None:
    assert says in finding(_replay(**told), ["debug-1"])
