"""Latency of the window and what schedulers did in it."""

from typing import Any

import pytest

from app.domain.bundle import summarise
from tests.bundles import answered, bundle, histogram, loads, metrics, rank

TTFT = "time_to_first_token_seconds"


def window(before: bytes, after: bytes) -> Any:
    """The latency between two scrapes ten seconds apart."""
    made = bundle(answered("metrics_1", before), answered("metrics_2", after, at=10.0))
    return summarise(made)["latency"]


def test_latency_is_of_the_window_and_the_mean_since_the_start_stands_apart() -> None:
    before = histogram(TTFT, 1000, 100.0, le_1_0=1000, le_10_0=1000)
    after = histogram(TTFT, 1040, 300.0, le_1_0=1000, le_10_0=1040)
    told = summarise(bundle(answered("metrics_1", before), answered("metrics_2", after, at=10.0)))[
        "latency"
    ]
    assert (told["ttft"]["n"], told["ttft"]["mean"]) == (40, 5.0)
    assert told["ttft"]["p50"] == pytest.approx(5.5)
    assert told["lifetime"]["ttft"]["mean"] == pytest.approx(300 / 1040, abs=1e-5)
    assert told["window_seconds"] == 10.0


def test_under_twenty_samples_there_is_a_mean_but_no_quantile() -> None:
    before = histogram(TTFT, 0, 0.0, le_1_0=0)
    after = histogram(TTFT, 5, 2.5, le_1_0=5)
    told = summarise(bundle(answered("metrics_1", before), answered("metrics_2", after, at=10.0)))[
        "latency"
    ]
    assert (told["ttft"]["mean"], told["ttft"]["p99"]) == (0.5, None)


def test_the_queue_time_is_found_under_its_name_in_0_5_2() -> None:
    before = histogram("queue_time_s", 0, 0.0, le_1_0=0)
    after = histogram("queue_time_s", 4, 2.0, le_1_0=4)
    told = summarise(bundle(answered("metrics_1", before), answered("metrics_2", after, at=10.0)))[
        "latency"
    ]
    assert told["queue"]["mean"] == 0.5


def test_stages_are_told_by_name() -> None:
    def scrape(count: int, total: float) -> bytes:
        lines = [
            f'sglang:per_stage_req_latency_seconds_{suffix}{{stage="prefill_forward"}} {value}'
            for suffix, value in (("count", count), ("sum", total))
        ]
        return ("\n".join(lines) + "\n").encode()

    made = bundle(
        answered("metrics_1", scrape(1, 1.0)), answered("metrics_2", scrape(3, 7.0), at=10.0)
    )
    assert summarise(made)["latency"]["stages"]["prefill_forward"]["mean"] == 3.0


def test_without_metrics_latency_is_unknown_and_the_cumulative_loads_tell_the_work() -> None:
    first = rank(
        num_running_reqs=1,
        total_prefill_uncached_tokens=1000,
        total_prefill_busy_us=0,
        decode_moments=[0, 0, 0, 0, 0, 0],
    )
    last = rank(
        at=10.0,
        num_running_reqs=1,
        total_prefill_uncached_tokens=3000,
        total_prefill_busy_us=5_000_000,
        decode_moments=[100, 200, 1_000_000, 400, 0, 200],
    )
    summary = summarise(
        bundle(
            answered("metrics_1", status=404),
            answered("loads_all_1", loads(first)),
            answered("loads_all_2", loads(last, at=10.0), at=10.0),
        )
    )
    done = summary["load"]["work_done"]
    assert summary["latency"]["ttft"] is None
    assert done["prefill_tokens_per_second"] == pytest.approx(200.0)
    assert done["prefill_busy_share"] == pytest.approx(0.5)
    assert done["decode_pass_mean_seconds"] == pytest.approx(0.01)
    assert summary["load"]["per_rank"][0]["throughput"] == pytest.approx(20.0)
    assert "metrics-off" in {one["id"] for one in summary["signals"]}


def test_rates_between_scrapes_are_by_second_and_never_negative() -> None:
    before, after = metrics(num_requests_total=100.0), metrics(num_requests_total=160.0)
    made = bundle(answered("metrics_1", before), answered("metrics_2", after, at=20.0))
    [row] = summarise(made)["between_scrapes"]
    assert (row["difference"], row["per_second"]) == (60.0, 3.0)
