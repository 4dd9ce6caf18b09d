"""The document of ``replay --json``, and a line of ``replay --out``."""

from typing import Any

import orjson

from app.domain.replay.options import Options, TargetFacts
from app.domain.replay.outcomes import error_of_abort, error_of_status, row
from app.domain.replay.plan import plan
from app.domain.replay.summary import document
from app.domain.replay.symptoms import Question
from app.domain.replay.tally import Trial
from app.domain.replay.verdict import verdict
from tests.replays import FINISHED, outcome, recorded_request, trial_of
from tests.unit.test_replay_died import crash

QUIET = trial_of(*(outcome(index) for index in range(10)), after="up")
CRASHED = trial_of(*crash(), after="down")


def summarized(*trials: Trial) -> dict[str, Any]:
    """The document as whoever reads JSON gets it."""
    question = Question("crash")
    made = plan([recorded_request(index) for index in range(10)], Options(), TargetFacts())
    told = document(made, trials, verdict(trials, question), question, {"name": "debug-1"})
    read: dict[str, Any] = orjson.loads(orjson.dumps(told))
    return read


def test_the_document_has_what_the_interface_promises() -> None:
    told = summarized(QUIET)

    assert told["requests"] == told["sent"] == told["completed"] == 10
    assert told["verdict"] == "not reproduced"
    assert told["errors"] == []
    assert told["recorded"]["e2e"]["p50"] == told["replayed"]["e2e"]["p50"] == 0.5
    assert told["replayed"]["tokens_per_second"] > 0
    assert told["fidelity"]["lateness_ms"] == {
        "n": 10, "p50": 1.0, "p90": 1.0, "p99": 1.0, "max": 1.0,
    }  # fmt: skip
    assert told["fidelity"]["valid"] is True
    assert told["stripped"] == ["rid"]
    assert told["target"] == {"name": "debug-1"}


def test_the_figures_are_those_of_the_run_that_showed_it() -> None:
    told = summarized(CRASHED, QUIET)

    assert told["verdict"] == "reproduced sometimes"
    assert told["completed"] == 4
    assert told["died"]["last_sent"] == 5
    assert told["errors"][0] == {
        "class": "connection-refused", "count": 4, "own_making": 0, "first_index": 6,
        "example": None,
    }  # fmt: skip
    assert [one["symptom_was"] for one in told["trials"]] == ["shown", "not shown"]


def test_a_replay_that_sent_nothing_has_a_document_too() -> None:
    told = summarized()

    assert (told["verdict"], told["sent"], told["trials"]) == ("inconclusive", 0, [])
    assert told.keys() == summarized(QUIET).keys()


def test_what_was_not_measured_is_null_and_never_left_out() -> None:
    unasked = trial_of(outcome(0, "bad-request", lateness_ms=None), after="up")
    told = summarized(unasked)
    nothing = {"n": 0, "p50": None, "p90": None, "p99": None, "max": None}

    assert told["replayed"] == {"ttft": nothing, "e2e": nothing, "tokens_per_second": None}
    assert told["ratio"] == {"ttft": nothing, "e2e": nothing}
    assert summarized()["recorded"] == {"ttft": nothing, "e2e": nothing}
    assert told["fidelity"]["lateness_ms"] == nothing
    assert told["fidelity"]["valid"] is None


def test_recorded_and_replayed_are_paired_request_by_request() -> None:
    told = summarized(trial_of(*(outcome(n, e2e_seconds=0.5 * (n + 1)) for n in range(10))))

    assert told["ratio"]["e2e"] == {"n": 10, "p50": 5.0, "p90": 9.0, "p99": 10.0, "max": 10.0}


def test_without_a_schedule_nothing_is_said_of_its_fidelity() -> None:
    told = summarized(trial_of(outcome(), mode="closed", after="up"))

    assert told["fidelity"]["valid"] is None


def test_a_line_of_outcomes_tells_an_error_only_where_there_is_one() -> None:
    good, bad = row(outcome(3), FINISHED), row(outcome(4, "aborted", says="why"), FINISHED)

    assert "error" not in good
    assert (bad["index"], bad["status"], bad["error"], bad["says"]) == (4, 200, "aborted", "why")
    assert good["recorded"]["e2e_seconds"] == 0.5
    orjson.dumps([good, bad])


def test_the_class_of_an_answer_is_that_of_its_status() -> None:
    statuses = (200, 302, 401, 404, 422, 429, 500, 503, 100)
    assert [error_of_status(status) for status in statuses] == [
        None, "redirected", "unauthorized", "not-found", "bad-request", "too-many", "server-error",
        "overloaded", "malformed-answer",
    ]  # fmt: skip
    assert [error_of_abort(status) for status in (None, 200, 400, 503)] == [
        "aborted", "aborted", "bad-request", "overloaded",
    ]  # fmt: skip
