"""From summaries to a report: class, strongest signal, ruled out, next steps, risk."""

from typing import Any

import orjson
import pytest

from app.domain.advice import still_open
from app.domain.bundle import summarise
from app.domain.capture import Bundle, Outcome
from app.domain.diagnosis import diagnose
from tests.bundles import answered, bundle, loads, metrics, rank, serving, silent

WORK = {"num_running_reqs": 2, "num_queue_reqs": 0}


def scraped(after_seconds: float, **values: float) -> dict[str, Any]:
    made = bundle(answered("metrics_1", metrics(**values)), after_seconds=after_seconds)
    return summarise(made)


def test_nothing_at_all_decides_nothing() -> None:
    told = diagnose([])
    assert (told["problem_class"], told["strongest_signal"], told["best_guess"]) == (
        None,
        None,
        None,
    )
    assert told["production_risk"].startswith("Not known")


@pytest.mark.parametrize(
    ("made", "problem_class"),
    [
        pytest.param(bundle(silent("ready", Outcome.REFUSED)), "down/unhealthy", id="gone"),
        pytest.param(
            bundle(*serving(rank(age=70.0, num_running_reqs=1))), "hang/timeout", id="wedged"
        ),
        pytest.param(
            bundle(*serving(rank(age=20.0, num_running_reqs=1))), None, id="20 s of silence"
        ),
        pytest.param(bundle(*serving(rank())), None, id="idle"),
        pytest.param(
            bundle(*serving(rank(num_running_reqs=1, num_waiting_reqs=50))),
            None,
            id="a queue, no base",
        ),
        pytest.param(bundle(answered("ready")), None, id="too little"),
    ],
)
def test_the_class_is_given_only_where_the_evidence_decides(
    made: Bundle, problem_class: str | None
) -> None:
    assert summarise(made)["problem_class"] == problem_class


def test_a_queue_that_is_high_against_the_healthy_bundle_is_latency() -> None:
    made = bundle(*serving(rank(num_running_reqs=1, num_waiting_reqs=50)))
    summary = summarise(made, baseline={"load": {"totals": {"waiting": 0}}})
    assert summary["problem_class"] == "latency/throughput"


@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "newest first"])
def test_two_bundles_a_minute_apart_with_work_and_frozen_counters_are_a_wedge(order: int) -> None:
    bundles = [scraped(0, **WORK, num_requests_total=5), scraped(70, **WORK, num_requests_total=5)]
    told = diagnose(bundles[::order])
    assert told["problem_class"] == "hang/timeout"
    assert told["strongest_signal"]["id"] == "wedged-between-bundles"
    assert told["strongest_signal"]["evidence"][0]["artifact"] == "metrics_1"
    assert "stacks" in told["next_steps"][0]["text"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            {**WORK, "num_requests_total": 5}, {**WORK, "num_requests_total": 6}, id="moved"
        ),
        pytest.param(
            {"num_running_reqs": 0, "num_queue_reqs": 0, "num_requests_total": 5},
            {**WORK, "num_requests_total": 5},
            id="no work at first",
        ),
        pytest.param(WORK, WORK, id="no counter told"),
    ],
)
def test_two_bundles_without_proof_are_no_wedge(
    first: dict[str, float], second: dict[str, float]
) -> None:
    assert diagnose([scraped(0, **first), scraped(70, **second)])["problem_class"] is None


def test_two_bundles_of_two_targets_are_not_compared() -> None:
    first, second = (
        scraped(0, **WORK, num_requests_total=5),
        scraped(70, **WORK, num_requests_total=5),
    )
    assert diagnose([{**first, "base_url": "http://other:30000"}, second])["problem_class"] is None


def test_a_counter_lower_than_in_the_bundle_before_is_a_restart() -> None:
    told = diagnose([scraped(0, num_requests_total=500), scraped(300, num_requests_total=3)])
    assert "restart-between-bundles" in {one["id"] for one in told["claims"]}
    assert "already destroyed the stacks" in told["production_risk"]


def test_the_class_of_an_older_bundle_stays_while_the_newest_decides_nothing() -> None:
    stuck = summarise(bundle(*serving(rank(age=70.0, num_running_reqs=1))))
    later = summarise(bundle(answered("ready"), after_seconds=600))
    assert diagnose([later, stuck])["problem_class"] == "hang/timeout"


def test_ruled_out_comes_only_from_rules_that_looked() -> None:
    summary = summarise(bundle(*serving(rank(num_running_reqs=1))))
    assert {one["id"] for one in summary["ruled_out"]} <= {one["id"] for one in summary["quiet"]}
    assert summarise(bundle())["ruled_out"] == []


def test_figures_of_an_old_snapshot_exclude_only_with_less_certainty() -> None:
    fresh = summarise(bundle(*serving(rank(num_running_reqs=1))))
    old = summarise(bundle(*serving(rank(age=70.0, num_running_reqs=1))))
    for summary, status in ((fresh, "established"), (old, "supported")):
        excluded = {one["id"]: one["status"] for one in summary["ruled_out"]}
        assert excluded["kv-pressure"] == status


def test_a_queue_too_short_to_claim_and_too_long_to_exclude_is_neither() -> None:
    made = bundle(*serving(rank(num_running_reqs=16, num_waiting_reqs=14)))
    summary = summarise(made)
    told = [one["id"] for key in ("signals", "ruled_out") for one in summary[key]]
    assert "queue-build-up" not in told


def test_what_another_bundle_claims_is_not_ruled_out() -> None:
    queue = summarise(bundle(*serving(rank(num_running_reqs=1, num_waiting_reqs=50))))
    quiet = summarise(
        bundle(answered("loads_all_1", loads(rank(num_running_reqs=1))), after_seconds=60)
    )
    assert "queue-build-up" in {one["id"] for one in quiet["ruled_out"]}
    assert "queue-build-up" not in {one["id"] for one in diagnose([queue, quiet])["ruled_out"]}


def test_evidence_of_a_named_bundle_is_placed_in_it() -> None:
    summary = summarise(bundle(*serving(rank(num_running_reqs=1))))
    told = diagnose([{**summary, "artifact": "bundle 7"}])
    places = [place for one in told["ruled_out"] for place in one["evidence"]]
    assert places
    assert all(place["artifact"].startswith("bundle 7/") for place in places)


def test_every_rule_stands_among_what_was_checked() -> None:
    summary = summarise(bundle(*serving(rank())))
    rows = {one["what"]: one["result"] for one in summary["checked"]}
    assert rows["health"].startswith("healthy.")
    assert rows["ttft-high-queue-short"].startswith("not checked.")
    assert len(rows) == summary["rules"] + 1


def test_each_step_is_told_once_with_its_reason_and_its_risk() -> None:
    stuck = summarise(bundle(*serving(rank(age=70.0, num_running_reqs=1))))
    steps = diagnose([stuck, {**stuck, "collected_at": "2026-03-02T13:00:00Z"}])["next_steps"]
    assert len({one["text"] for one in steps}) == len(steps)
    assert all(one["why"] and one["risk"] for one in steps)


def test_no_step_asks_a_silent_scheduler_again() -> None:
    made = bundle(answered("model_info", {}), silent("server_info", at=1.0))
    texts = [one["text"] for one in summarise(made)["next_steps"]]
    assert any(text.startswith("Do not ask /server_info") for text in texts)


def test_a_diagnosis_is_plain_json() -> None:
    told = diagnose([summarise(bundle(*serving(rank(age=70.0, num_running_reqs=1))))])
    assert orjson.loads(orjson.dumps(told)) == told


def test_steps_name_the_rung_that_does_them_and_keep_their_other_keys() -> None:
    stuck = diagnose([summarise(bundle(*serving(rank(age=70.0, num_running_reqs=1))))])
    first, second = stuck["next_steps"][:2]
    assert set(first) == {"text", "why", "risk", "command", "rung", "place"}
    assert (first["rung"], second["rung"]) == ("stacks", None)


def test_what_held_until_the_stacks_were_saved_is_over_once_they_are() -> None:
    steps = diagnose([summarise(bundle(*serving(rank(age=70.0, num_running_reqs=1))))])[
        "next_steps"
    ]
    assert still_open(steps, ["host facts"]) == steps
    left = still_open(steps, ["native stacks"])
    assert [one["text"] for one in steps if one not in left] == [
        "Do not ask /server_info or a health probe again until the stacks are saved."
    ]
