"""What runs of a replay say together: only what the target did can make it "reproduced"."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.claims import ProblemClass, Status
from app.domain.replay.latency import LEAST_PAIRS, Pair, noise_floor, paired, quantiles
from app.domain.replay.options import Options
from app.domain.replay.outcomes import ERROR_CLASSES, ErrorClass, Outcome, own_making
from app.domain.replay.output import first_divergent, likeness
from app.domain.replay.planned import Recorded
from app.domain.replay.symptoms import Question, Sameness, Symptom, sighting, symptom_of
from app.domain.replay.tally import Trial
from app.domain.replay.verdict import Verdict, two_sides, verdict
from tests.replays import FINISHED, outcome, trial_of
from tests.unit.test_replay_died import crash

SAME = Sameness(model=True, topology=True, accelerator=True)
UNFINISHED = Recorded(state="unfinished")


def judged(symptom: Symptom, *trials: Trial, **asked: Any) -> Verdict:
    return verdict(trials, Question(symptom, **asked))


def quiet(count: int = 30, **told: Any) -> Trial:
    """A run in which nothing happened."""
    return trial_of(*(outcome(index, **told) for index in range(count)), after="up")


def failed(error: ErrorClass, count: int = 5, **around: Any) -> Trial:
    """A run of 30 of which the last *count* failed like that."""
    good = [outcome(index) for index in range(30 - count)]
    bad = [outcome(index, error, says="why") for index in range(30 - count, 30)]
    return trial_of(*good, *bad, **{"after": "up", **around})


LONG_ANSWERS = [outcome(0), *(outcome(n, "timeout", ttft_seconds=0.1) for n in range(1, 9))]
CRASHED = trial_of(*crash(), after="down")


def test_a_crash_each_time_is_reproduced_and_established_after_three() -> None:
    one, three = judged("crash", CRASHED), judged("crash", CRASHED, CRASHED, CRASHED)

    assert (one.word, one.status) == ("reproduced", Status.SUPPORTED)
    assert (three.word, three.status) == ("reproduced", Status.ESTABLISHED)
    assert one.why == (
        "Shown in 1 of 1 trial. The target went away after request 5, while 2 were in flight."
    )
    assert one.sightings[0].indexes == (5, 4)


def test_a_crash_now_and_then_says_how_often() -> None:
    found = judged("crash", CRASHED, quiet(), quiet())

    assert (found.word, found.shown, found.usable) == ("reproduced sometimes", 1, 3)
    assert found.why.startswith("Shown in 1 of 3 trials.")


def test_no_crash_says_what_that_is_worth() -> None:
    found = judged("crash", quiet(), quiet())

    assert found.word == "not reproduced"
    assert found.why == (
        "The target stayed up. None in 2 trials: that speaks only against a fault that comes in at"
        " least 78 % of trials. A rarer one may still be there."
    )


def test_no_fault_in_few_requests_proves_nothing_where_the_rate_is_known() -> None:
    found = judged("error", quiet(20), rate=0.01625)

    assert "20 requests would show none 72 % of the time" in found.why


def test_nothing_sent_is_inconclusive() -> None:
    assert judged("crash").word == "inconclusive"


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (failed("bad-request", 30), "of our own making: 30 × refused as malformed (400)"),
        (failed("unauthorized", 30), "of our own making: 30 × no access (401, 403)"),
        (failed("not-found", 30), "of our own making: 30 × not offered (404)"),
        (failed("connection-refused", 30, after="unknown"), "perhaps not up"),
        (
            failed("bad-request", 3),
            "3 of 30 requests never took part: 3 × refused as malformed (400)",
        ),
        (trial_of(outcome(0), planned=30, after="up"), "stopped after 1 of 30 requests"),
        (quiet(30, lateness_ms=80.0), "lateness p99 80 ms, where 25 ms are allowed"),
        (trial_of(*crash(count=6)[:6], after="unknown"), "Nothing else confirms it"),
    ],
    ids=["400", "401", "404", "refused", "some 400", "stopped", "late", "lost at the end"],
)
def test_a_run_that_could_not_show_it_is_inconclusive(trial: Trial, why: str) -> None:
    found = judged("crash", trial)

    assert (found.word, found.status) == ("inconclusive", Status.UNKNOWN)
    assert why in found.why


def test_a_suspect_that_never_took_part_keeps_the_verdict_open() -> None:
    good = [outcome(index) for index in range(500)]
    trial = trial_of(*good, outcome(500, "bad-request"), after="up")

    assert judged("crash", trial).word == "not reproduced"
    assert judged("crash", trial, suspects=frozenset((500,))).word == "inconclusive"


def test_runs_that_say_nothing_are_told_beside_those_that_do() -> None:
    found = judged("crash", quiet(), failed("unauthorized", 30))

    assert (found.word, found.unclear) == ("not reproduced", 1)
    assert "1 trial was inconclusive: No request was answered in full" in found.why


def test_a_late_run_that_crashed_has_crashed() -> None:
    late = [replace(one, lateness_ms=500.0) for one in crash()]

    assert judged("crash", trial_of(*late, after="down")).word == "reproduced"


@pytest.mark.parametrize(
    ("trial", "word"),
    [
        (failed("no-first-token", after="wedged"), "reproduced"),
        (failed("no-first-token", after="unknown"), "reproduced"),
        (failed("no-first-token", 1, after="unknown"), "inconclusive"),
        (failed("no-first-token", 1, after="up"), "not reproduced"),
        (quiet(), "not reproduced"),
        (CRASHED, "inconclusive"),
        (failed("timeout", 1, recorded={29: UNFINISHED}), "reproduced"),
        (trial_of(*LONG_ANSWERS, after="unknown"), "inconclusive"),
    ],
    ids=["wedged", "silent", "one", "one, and up", "none", "died", "the same one", "long answers"],
)
def test_a_hang_is_more_than_one_slow_answer(trial: Trial, word: str) -> None:
    assert judged("hang", trial).word == word


@pytest.mark.parametrize(
    ("trial", "options", "word"),
    [
        (failed("server-error"), Options(), "reproduced"),
        (failed("aborted", 1), Options(), "reproduced"),
        (failed("overloaded"), Options(), "reproduced"),
        (failed("overloaded"), Options(speed=2.0), "inconclusive"),
        (failed("too-many"), Options(mode="flat-out"), "inconclusive"),
        (failed("server-error"), Options(speed=2.0), "reproduced"),
        (quiet(), Options(), "not reproduced"),
    ],
    ids=["500", "abort", "503", "503 of speed", "429 of haste", "500 at speed", "none"],
)
def test_an_error_counts_unless_our_haste_explains_it(
    trial: Trial, options: Options, word: str
) -> None:
    assert judged("error", trial, options=options).word == word


def slow(factor: float, count: int = 30, cached: int = 0, **told: Any) -> Trial:
    """A run in which everything took *factor* times as long as recorded; *cached* is recorded."""
    made = [
        outcome(index, e2e_seconds=0.5 * factor, cached_tokens=0, **told) for index in range(count)
    ]
    recorded = {index: replace(FINISHED, cached_tokens=cached) for index in range(count)}
    return trial_of(*made, recorded=recorded, after="up")


@pytest.mark.parametrize(
    ("trial", "asked", "word", "why"),
    [
        (slow(1.1), {}, "reproduced", "Replayed end to end is 1.10 × the recorded one"),
        (slow(0.3), {}, "not reproduced", "0.30 ×"),
        (slow(1.1), {"sameness": Sameness()}, "inconclusive", "model and topology and acc"),
        (slow(1.1), {"options": Options(speed=2)}, "inconclusive", "not come as they were"),
        (slow(1.1, 5), {}, "inconclusive", "Only 5 requests of the recording can be compared"),
        (slow(1.1, lateness_ms=99.0), {}, "inconclusive", "lateness p99 99 ms"),
        (slow(1.1, lag_ms=70.0), {}, "inconclusive", "stood still for up to 70 ms"),
        (slow(1.1, cached=90), {}, "inconclusive", "a cold cache would explain it"),
        (slow(1.1, ttft_seconds=None, completion_tokens=9), {}, "inconclusive", "Only 0"),
        (slow(1.1), {"reference": "sound"}, "not reproduced", "1.10 ×"),
        (slow(1.5), {"reference": "sound"}, "reproduced", "1.50 ×"),
        (slow(1.1), {"reference": "sound", "noise": 0.05}, "reproduced", "5%, measured"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_latency_is_compared_only_with_its_like(
    trial: Trial, asked: dict[str, Any], word: str, why: str
) -> None:
    found = judged("latency", trial, **{"sameness": SAME, **asked})

    assert (found.word, why in found.why) == (word, True), found.why


def test_what_no_recording_tells_a_person_may_say() -> None:
    unknown, other = Sameness(model=True, topology=True), Sameness(model=False)

    found = judged("latency", slow(1.1), sameness=unknown.said())
    differs = judged("latency", slow(1.1), sameness=other.said())

    assert found.word == "reproduced"
    assert "That accelerator is the same was said, not read." in found.why
    assert differs.word == "inconclusive", "no word makes another model the same"


def test_two_runs_of_one_target_measure_the_noise() -> None:
    found = judged("latency", slow(1.2), slow(1.26), sameness=SAME, reference="sound")

    assert found.word == "reproduced"
    assert "noise 5%, measured" in found.why


def test_noise_of_single_requests_is_the_ninetieth_percentile() -> None:
    first = dict.fromkeys(range(LEAST_PAIRS), 1.0)
    second = {index: 1.0 + index / 100 for index in range(LEAST_PAIRS)}

    assert noise_floor(first, second) == pytest.approx(0.17)
    assert noise_floor(first, {0: 1.0}) is None


def test_pairs_are_compared_by_their_ratio() -> None:
    compared = paired([Pair(index, 1.0, 1.0 + index) for index in range(100)])

    assert [compared[one] for one in ("n", "p50", "p90", "p99")] == [100, 50.0, 90.0, 99.0]
    assert paired([Pair(0, 0.0, 1.0)])["p50"] is None
    assert quantiles([])["p50"] is None


@pytest.mark.parametrize(
    ("told", "recorded", "like"),
    [
        ({"compared_tokens": 3}, FINISHED, "same"),
        ({"compared_tokens": 3, "completion_tokens": 9}, FINISHED, "different"),
        (
            {"compared_tokens": 2, "completion_tokens": 2, "finish_reason": "length"},
            FINISHED,
            "same",
        ),
        ({"compared_tokens": 3, "first_divergent_token": 1}, FINISHED, "unjudged"),
        (
            {"compared_tokens": 3, "first_divergent_token": 1, "logprob_gap": -0.02},
            FINISHED,
            "noise",
        ),
        (
            {"compared_tokens": 3, "first_divergent_token": 1, "logprob_gap": 0.9},
            FINISHED,
            "different",
        ),
        (
            {"compared_tokens": 3, "first_divergent_token": 1, "logprob_gap": 0.9},
            replace(FINISHED, greedy=False),
            "unjudged",
        ),
        (
            {"compared_tokens": 3, "completion_tokens": 9},
            replace(FINISHED, greedy=None),
            "unjudged",
        ),
        ({}, FINISHED, "unknown"),
        ({"compared_tokens": 3}, UNFINISHED, "unknown"),
    ],
    ids=[
        "same", "longer", "cut by our cap", "no gap known", "small gap", "large gap",
        "drawn by chance", "longer, perhaps by chance", "nothing kept", "unfinished",
    ],
)  # fmt: skip
def test_answers_are_compared_by_the_first_token_that_differs(
    told: dict[str, Any], recorded: Recorded, like: str
) -> None:
    assert likeness(outcome(**told), recorded) == like


def test_the_first_token_that_differs() -> None:
    assert first_divergent([1, 2, 3], [1, 9, 3]) == 1
    assert first_divergent([1, 2, 3], [1, 2]) is None


def test_wrong_answers_came_again_only_where_it_is_known_which_are_wrong() -> None:
    trial = quiet(3, compared_tokens=3)

    assert judged("output", trial).word == "inconclusive"
    assert judged("output", trial, suspects=frozenset((1,))).word == "reproduced"
    assert judged("output", trial, reference="sound").word == "not reproduced"


def test_two_sides_are_told_in_one_sentence() -> None:
    good, bad = judged("crash", quiet(), quiet()), judged("crash", CRASHED, CRASHED)

    assert two_sides(good, bad, "0.5.21", "0.5.23") == (
        "Shown in 2 of 2 trials of 0.5.23; in 0 of 2 of 0.5.21."
    )
    assert two_sides(good, good, "0.5.21", "0.5.23") == (
        "Shown in 0 of 2 trials of 0.5.23; in 0 of 2 of 0.5.21."
    )


def test_the_side_that_shows_the_symptom_more_is_told_first() -> None:
    good, bad = judged("crash", quiet(), quiet()), judged("crash", CRASHED, CRASHED)
    sometimes = judged("crash", CRASHED, CRASHED, quiet(), quiet(), quiet())

    assert two_sides(bad, good, "old", "new") == "Shown in 2 of 2 trials of old; in 0 of 2 of new."
    assert two_sides(bad, sometimes, "old", "new") == (
        "Shown in 2 of 2 trials of old; in 2 of 5 of new."
    )


def test_where_nothing_but_foreign_json_came_no_error_of_the_target_is_shown() -> None:
    foreign = failed("malformed-answer", 30)

    for symptom in ("error", "crash", "hang"):
        assert judged(symptom, foreign, foreign, foreign).word == "inconclusive"
    assert "something else than the target may answer" in judged("error", foreign).why
    assert judged("error", failed("malformed-answer", 5)).word == "reproduced"


def nothing(count: int) -> Verdict:
    return judged("crash", *[failed("not-found", 30)] * count)


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        (
            nothing(1),
            judged("crash", CRASHED),
            "Shown in 1 of 1 trial of b; no trial of a was conclusive.",
        ),
        (
            judged("crash", quiet()),
            nothing(2),
            "Shown in 0 of 1 trial of a; no trial of b was conclusive.",
        ),
        (nothing(1), nothing(1), "No trial of b or of a was conclusive."),
        (judged("crash"), judged("crash"), "No trial of b or of a was conclusive."),
        (
            judged("crash", quiet(), failed("not-found", 30)),
            judged("crash", CRASHED),
            "Shown in 1 of 1 trial of b; in 0 of 1 of a. 1 trial was inconclusive.",
        ),
    ],
    ids=["good is silent", "bad is silent", "both are", "neither ran", "one of three is"],
)
def test_a_side_that_said_nothing_is_counted_in_no_share(
    good: Verdict, bad: Verdict, says: str
) -> None:
    assert two_sides(good, bad, "a", "b") == says


def test_errors_of_the_target_are_told_in_words() -> None:
    found = judged("error", failed("server-error", 2))

    assert "2 requests failed by the target's making: 2 × server error (5xx)." in found.why


def test_every_class_of_incident_has_a_symptom() -> None:
    assert {symptom_of(one) for one in ProblemClass} == {
        "crash", "hang", "latency", "error", "output",
    }  # fmt: skip
    assert symptom_of(None) == "crash"


def test_a_refusal_is_our_making_until_the_target_has_answered() -> None:
    assert own_making("connection-refused", answered_before=False)
    assert not own_making("connection-refused", answered_before=True)


OWN: list[ErrorClass] = [error for error in ERROR_CLASSES if own_making(error)]
errors = st.sampled_from([None, None, None, *ERROR_CLASSES])
fates = st.tuples(errors, st.sampled_from([0.001, 0.3, 0.5, 1.5, 4.0]))


@given(
    st.lists(fates, min_size=1, max_size=12),
    st.sampled_from(["crash", "hang", "error", "latency", "output"]),
    st.sampled_from(["up", "wedged", "down", "unknown"]),
    st.booleans(),
    st.data(),
)
@settings(deadline=None, max_examples=200)
def test_a_failure_of_our_own_making_never_makes_it_reproduced(
    told: list[tuple[ErrorClass | None, float]],
    symptom: Symptom,
    after: Any,
    up_before: bool,
    data: st.DataObject,
) -> None:
    question = Question(symptom, sameness=SAME, suspects=frozenset((0, 1)))
    outcomes = [
        outcome(index, error, e2e_seconds=seconds, compared_tokens=3 if error is None else 0)
        for index, (error, seconds) in enumerate(told)
    ]
    place = data.draw(st.integers(0, len(told) - 1))
    ours = outcome(place, data.draw(st.sampled_from(OWN)), e2e_seconds=told[place][1])
    changed: list[Outcome] = [*outcomes[:place], ours, *outcomes[place + 1 :]]

    before, later = (
        sighting(trial_of(*one, after=after, up_before=up_before), question)
        for one in (outcomes, changed)
    )
    assert later.state != "shown" or before.state == "shown"
