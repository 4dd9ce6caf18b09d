"""From answers to the verdict: what each way of answering, or of silence, proves."""

import pytest

from app.domain.bundle import summarise
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.health import health_facts, passive_verdict
from app.domain.observed import observe
from tests.bundles import answered, bundle, loads, metrics, rank, serving, silent

BUSY = {"num_running_reqs": 3, "num_waiting_reqs": 0}
ALL = ("ready", "model_info", "server_info", "loads_all_1", "metrics_1")


def verdict_of(made: Bundle) -> tuple[str, str]:
    health = summarise(made)["health"]
    return health["verdict"], health["row"]


def scraped_twice(before: bytes, after: bytes, *, apart: float) -> list[Capture]:
    return [answered("metrics_1", before), answered("metrics_2", after, at=apart)]


def test_everything_refused_is_gone() -> None:
    assert verdict_of(bundle(*(silent(name, Outcome.REFUSED) for name in ALL)))[0] == "gone"


def test_everything_silent_is_unknown_not_gone() -> None:
    assert verdict_of(bundle(*(silent(name) for name in ALL))) == ("unknown", "silent")


def test_a_bundle_in_which_nothing_was_asked_is_unknown() -> None:
    asked_nothing = [silent(name, Outcome.NOT_ASKED, at=None) for name in ALL]
    assert verdict_of(bundle(*asked_nothing)) == ("unknown", "nothing-asked")


def test_a_green_ready_alone_is_no_health() -> None:
    assert verdict_of(bundle(answered("ready"))) == ("unknown", "undecided")


@pytest.mark.parametrize(
    ("seconds", "generates"),
    [pytest.param(1.01, True, id="slept a second"), pytest.param(0.004, None, id="a mere flag")],
)
def test_a_200_of_the_python_health_proves_a_token_only_if_it_took_a_second(
    seconds: float, generates: bool | None
) -> None:
    seen = observe(bundle(answered("ready"), answered("health", seconds=seconds)))
    assert health_facts(seen).generates is generates


def test_a_200_of_an_old_health_generate_proves_nothing() -> None:
    info = {"version": "0.4.9", "internal_states": [{}], "tp_size": 1}
    made = bundle(answered("get_server_info", info), answered("health_generate", seconds=1.2))
    assert health_facts(observe(made)).generates is None


def test_a_probe_that_was_given_up_early_proves_nothing() -> None:
    seen = observe(bundle(answered("ready"), silent("health_generate", seconds=10.0)))
    assert health_facts(seen).generates is None


def test_a_probe_that_outwaited_the_server_proves_that_no_token_came() -> None:
    made = bundle(answered("ready"), silent("health_generate", seconds=22.0))
    assert verdict_of(made) == ("false green", "green-cannot-generate")


def test_503_at_once_from_a_server_that_served_nothing_is_starting() -> None:
    made = bundle(answered("ready", status=503), answered("health", status=503, seconds=0.01))
    assert verdict_of(made)[0] == "starting"


def test_health_503_while_prefill_counters_advance_is_a_false_red() -> None:
    before = loads(rank(**BUSY, total_prefill_uncached_tokens=1000))
    after = loads(rank(at=10.0, **BUSY, total_prefill_uncached_tokens=9192), at=10.0)
    made = bundle(
        answered("ready", status=503),
        answered("loads_all_1", before),
        answered("loads_all_2", after, at=10.0),
        answered("health", status=503, at=11.0, seconds=20.0),
    )
    summary = summarise(made)
    assert summary["health"]["verdict"] == "false red"
    assert "busy, not stuck" in summary["health"]["says"]
    assert summary["problem_class"] == "down/unhealthy"


def test_a_fresh_empty_server_is_healthy_without_a_probe() -> None:
    assert passive_verdict(serving(rank())) == "healthy"


def test_a_probe_does_not_count_for_the_passive_verdict() -> None:
    captures = [answered("ready"), answered("health", seconds=1.0)]
    assert passive_verdict(captures) == "unknown"


def test_an_old_snapshot_with_work_is_wedged_after_a_minute() -> None:
    assert passive_verdict(serving(rank(age=71.8, **BUSY))) == "wedged"


def test_an_old_snapshot_with_work_is_undecided_before_a_minute() -> None:
    assert passive_verdict(serving(rank(age=29.5, **BUSY))) == "unknown"


def test_an_old_empty_snapshot_is_no_idle_server() -> None:
    summary = summarise(bundle(*serving(rank(age=90.0))))
    assert summary["health"]["verdict"] == "false green"
    assert summary["idle"] is None


def test_one_stuck_rank_of_two_under_a_green_ready_is_a_false_green() -> None:
    made = bundle(*serving(rank(0, **BUSY), rank(1, age=96.0, **BUSY)))
    summary = summarise(made)
    assert summary["health"]["verdict"] == "false green"
    assert "DP1 of 2 ranks" in summary["health"]["says"]
    assert summary["problem_class"] == "hang/timeout"


def test_counters_that_stand_still_for_a_minute_with_work_are_wedged() -> None:
    told = metrics(num_running_reqs=2, num_queue_reqs=0, generation_tokens_total=7)
    assert verdict_of(bundle(*scraped_twice(told, told, apart=60.0))) == ("wedged", "wedged")


def test_counters_that_stand_still_for_ten_seconds_are_undecided() -> None:
    told = metrics(num_running_reqs=2, num_queue_reqs=0, generation_tokens_total=7)
    assert verdict_of(bundle(*scraped_twice(told, told, apart=10.0))) == ("unknown", "short-window")


def test_work_that_came_between_two_looks_is_no_wedge() -> None:
    before = metrics(num_running_reqs=0, num_queue_reqs=0, generation_tokens_total=7)
    after = metrics(num_running_reqs=1, num_queue_reqs=0, generation_tokens_total=7)
    assert verdict_of(bundle(*scraped_twice(before, after, apart=90.0)))[0] != "wedged"


def test_counters_that_move_with_a_queue_are_busy() -> None:
    before = metrics(num_running_reqs=2, num_queue_reqs=5, generation_tokens_total=7)
    after = metrics(num_running_reqs=2, num_queue_reqs=5, generation_tokens_total=900)
    assert verdict_of(bundle(*scraped_twice(before, after, apart=10.0))) == ("busy", "busy")


def test_server_info_silent_beside_model_info_is_not_healthy() -> None:
    made = bundle(answered("ready"), answered("model_info", {}), silent("server_info", at=1.0))
    assert verdict_of(made) == ("unknown", "scheduler-silent")


def test_loads_that_block_everything_after_them_are_named() -> None:
    made = bundle(
        answered("ready"),
        answered("model_info", {}),
        silent("loads_all_1", at=1.0),
        silent("metrics_2", at=5.0),
    )
    summary = summarise(made)
    assert (summary["health"]["verdict"], summary["health"]["row"]) == ("unknown", "blocked")
    assert "blocked-after-loads" in {one["id"] for one in summary["signals"]}


def test_only_401_is_no_access_and_not_down() -> None:
    made = bundle(
        answered("ready"), answered("server_info", status=401), answered("loads_all_1", status=401)
    )
    summary = summarise(made)
    assert (summary["health"]["verdict"], summary["health"]["row"]) == ("unknown", "closed")
    assert summary["problem_class"] is None


def test_a_proxy_alone_is_unknown() -> None:
    page = b"<html><head><title>502 Bad Gateway</title></head></html>"
    made = bundle(answered("ready", page, status=502), answered("server_info", page, status=502))
    assert verdict_of(made) == ("unknown", "proxy")
