"""Each symptom, in each way that a run can go wrong: what is not known is never a good verdict."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from app.domain.replay.outcomes import ErrorClass
from app.domain.replay.planned import Recorded
from app.domain.replay.symptoms import Question, Sameness, Symptom
from app.domain.replay.tally import Trial
from app.domain.replay.verdict import verdict
from tests.replays import FINISHED, outcome, trial_of
from tests.unit.test_replay_died import crash

SYMPTOMS: tuple[Symptom, ...] = get_args(Symptom)
SAME = Sameness(model=True, topology=True, accelerator=True)


def run(*errors: ErrorClass | None, **around: Any) -> Trial:
    """Thirty requests that end in turn like *errors*; None is an answer that can be compared."""
    told = [
        outcome(index, error, compared_tokens=0 if error else 3)
        for index, error in zip(range(30), [*errors] * 30, strict=False)
    ]
    return trial_of(*told, **{"after": "up", **around})


def late() -> Trial:
    told = (outcome(n, lateness_ms=400.0, compared_tokens=3) for n in range(30))
    return trial_of(*told, after="up")


ALL, DIED, OPEN = "not reproduced", "reproduced", "inconclusive"
RUNS: dict[str, tuple[Trial, dict[Symptom, str]]] = {
    "answered": (run(None), dict.fromkeys(SYMPTOMS, ALL) | {"latency": DIED}),
    "answered, unknown after": (
        run(None, after="unknown"),
        {"crash": OPEN, "hang": ALL, "error": ALL, "output": ALL, "latency": DIED},
    ),
    "answered, answers after": (
        run(None, after="answers"), dict.fromkeys(SYMPTOMS, ALL) | {"latency": DIED},
    ),
    "half unanswered, answers after": (
        run(None, "no-first-token", after="answers"),
        {"crash": ALL, "hang": OPEN, "error": OPEN, "output": ALL, "latency": OPEN},
    ),
    "answered, down after": (
        run(None, after="down"),
        {"crash": DIED, "hang": OPEN, "error": ALL, "output": ALL, "latency": DIED},
    ),
    "answered, wedged after": (
        run(None, after="wedged"),
        {"crash": ALL, "hang": DIED, "error": ALL, "output": ALL, "latency": DIED},
    ),
    "died": (
        trial_of(*crash(), after="down"),
        {"crash": DIED, "hang": OPEN, "error": DIED, "output": OPEN, "latency": OPEN},
    ),
    "never up": (run("connection-refused", after="down"), dict.fromkeys(SYMPTOMS, OPEN)),
    "refused though seen": (
        run("connection-refused", after="down", up_before=True), dict.fromkeys(SYMPTOMS, OPEN),
    ),
    "silent from the start": (
        run("no-first-token", after="unknown"), dict.fromkeys(SYMPTOMS, OPEN),
    ),
    "wedged from the start": (run("no-first-token", after="wedged"), dict.fromkeys(SYMPTOMS, OPEN)),
    "half refused as busy": (
        run(None, "overloaded"),
        {"crash": OPEN, "hang": OPEN, "error": DIED, "output": OPEN, "latency": OPEN},
    ),
    "half refused as malformed": (run(None, "bad-request"), dict.fromkeys(SYMPTOMS, OPEN)),
    "half unanswered": (
        run(None, "no-first-token"),
        {"crash": ALL, "hang": OPEN, "error": OPEN, "output": ALL, "latency": OPEN},
    ),
    "half unanswered, wedged": (
        run(None, "no-first-token", after="wedged"),
        {"crash": ALL, "hang": DIED, "error": OPEN, "output": ALL, "latency": OPEN},
    ),
    "late": (late(), dict.fromkeys(SYMPTOMS, OPEN)),
    "stopped": (
        run(None, planned=60), dict.fromkeys(SYMPTOMS, OPEN) | {"latency": DIED},
    ),
    "resumed": (run(None, resumed=1), dict.fromkeys(SYMPTOMS, ALL) | {"latency": OPEN}),
}  # fmt: skip
CASES = [
    pytest.param(symptom, trial, expected[symptom], id=f"{symptom}: {name}")
    for name, (trial, expected) in RUNS.items()
    for symptom in SYMPTOMS
]


@pytest.mark.parametrize(("symptom", "trial", "word"), CASES)
@pytest.mark.parametrize("trials", [1, 3])
def test_the_verdict_on_each_way_to_end(
    symptom: Symptom, trial: Trial, word: str, trials: int
) -> None:
    reference = "sound" if symptom == "output" else "faulty"
    asked = Question(symptom, reference=reference, sameness=SAME)  # type: ignore[arg-type]
    found = verdict([trial] * trials, asked)

    assert found.word == word, found.why
    assert (found.usable == 0) == (word == "inconclusive")
    assert (found.status.value == "unknown") == (word == "inconclusive")
    assert found.why.endswith(".")
    if word == "not reproduced":
        assert "None in" in found.why


@pytest.mark.parametrize(("symptom", "trial", "word"), CASES)
def test_a_run_that_says_nothing_never_makes_another_one_green(
    symptom: Symptom, trial: Trial, word: str
) -> None:
    """Beside it stands one in which nothing can be seen at all."""
    reference = "sound" if symptom == "output" else "faulty"
    asked = Question(symptom, reference=reference, sameness=SAME)  # type: ignore[arg-type]
    found = verdict([trial, run("bad-request")], asked)

    assert (found.word, found.unclear) == (word, 1 + (word == "inconclusive"))


LOOSE = replace(FINISHED, greedy=False)


@pytest.mark.parametrize(
    ("told", "recorded", "word"),
    [
        ({"compared_tokens": 3}, FINISHED, "not reproduced"),
        ({"compared_tokens": 3, "first_divergent_token": 2}, FINISHED, "inconclusive"),
        ({"compared_tokens": 3, "first_divergent_token": 0}, LOOSE, "inconclusive"),
        ({"compared_tokens": 3, "completion_tokens": 9}, LOOSE, "inconclusive"),
        ({"compared_tokens": 3, "finish_reason": "length"}, LOOSE, "not reproduced"),
        ({"compared_tokens": 3, "finish_reason": "abort"}, FINISHED, "reproduced"),
        ({"compared_tokens": 3, "completion_tokens": 9}, FINISHED, "reproduced"),
        (
            {"compared_tokens": 3, "first_divergent_token": 1, "logprob_gap": 0.05},
            FINISHED,
            "not reproduced",
        ),
        (
            {"compared_tokens": 3, "first_divergent_token": 1, "logprob_gap": -2.0},
            FINISHED,
            "reproduced",
        ),
        (
            {"compared_tokens": 3, "first_divergent_token": 1, "logprob_gap": 9.0},
            LOOSE,
            "inconclusive",
        ),
        ({"compared_tokens": 0}, FINISHED, "inconclusive"),
        ({"compared_tokens": 3}, replace(FINISHED, finish_reason=None), "inconclusive"),
        ({"compared_tokens": 3}, Recorded(state="aborted"), "inconclusive"),
    ],
    ids=[
        "same", "differs, no gap known", "drawn by chance", "longer by chance", "cut by our cap",
        "ended otherwise", "longer", "about as likely", "far less likely", "unlikely and drawn",
        "nothing kept", "how it ended is not known", "aborted when recorded",
    ],
)  # fmt: skip
def test_side_b_differs_from_side_a_only_by_what_chance_does_not_explain(
    told: dict[str, Any], recorded: Recorded, word: str
) -> None:
    pairs = dict.fromkeys(range(30), recorded)
    trial = trial_of(*(outcome(n, **told) for n in range(30)), recorded=pairs, after="up")

    found = verdict([trial], Question("output", reference="sound"))

    assert found.word == word, found.why


def test_one_answer_that_was_compared_does_not_speak_for_the_others() -> None:
    told = [outcome(0, compared_tokens=3), *(outcome(n) for n in range(1, 30))]
    found = verdict([trial_of(*told, after="up")], Question("output", reference="sound"))

    assert (found.word, found.why) == ("inconclusive", "29 of 30 answers could not be compared.")


def test_a_suspect_that_was_turned_away_keeps_the_verdict_open() -> None:
    good = [outcome(index) for index in range(500)]
    trial = trial_of(*good, outcome(500, "overloaded"), after="up")

    assert verdict([trial], Question("crash")).word == "not reproduced"
    found = verdict([trial], Question("crash", suspects=frozenset((500,))))
    assert (found.word, found.why) == (
        "inconclusive", "Request 500, which is to show it, was turned away.",
    )  # fmt: skip


def test_what_was_not_sent_as_recorded_stands_beside_that_nothing_came() -> None:
    told = Question("crash", untested="Not tested: 1 request was left out.")
    quiet, shown = run(None), trial_of(*crash(), after="down")

    assert verdict([quiet], told).why.endswith("Not tested: 1 request was left out.")
    assert "Not tested" not in verdict([shown], told).why
    assert verdict([quiet], replace(told, left_out=frozenset((8,)))).word == "inconclusive"
