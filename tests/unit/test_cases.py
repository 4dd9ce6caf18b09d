"""Cases from public reports: what must be said, and what must never be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.domain.bundle import summarise
from app.domain.capture import Bundle, Capture
from app.domain.diagnosis import diagnose
from app.domain.server_info import ServerInfo, read_server_info
from tests.bundles import answered, bundle, loads, rank, silent
from tests.captured import ids, outcome

CASES = Path(__file__).parents[1] / "data" / "cases"
TRICKY = CASES / "09-metrics-tricky-values"
FROZEN = CASES / "11-frozen-counters-and-stale-gauge"
SHAPES = CASES / "12-server-info-shapes"
LONG_PREFILL = CASES / "14-health-503-but-prefill-advances"
HUNG = CASES / "15-bundle-from-a-hung-server"


def expected(case: Path) -> Any:
    return orjson.loads((case / "expected.json").read_bytes())


# 09 — metrics with tricky values


@pytest.fixture(scope="module")
def tricky() -> Mapping[str, Any]:
    return summarise(bundle(answered("metrics_1", (TRICKY / "metrics.txt").read_bytes())))


def test_09_the_mean_is_exact_and_the_99th_percentile_is_a_bound(tricky: Mapping[str, Any]) -> None:
    ttft = tricky["latency"]["lifetime"]["ttft"]
    facts = expected(TRICKY)["parse_facts"]
    assert (ttft["mean"], ttft["n"]) == (facts["ttft_mean"], facts["ttft_count"])
    assert ttft["p99"] == {"over": 10.0}


def test_09_no_sample_is_no_average(tricky: Mapping[str, Any]) -> None:
    assert tricky["latency"]["lifetime"]["e2e"]["mean"] is None


def test_09_a_count_that_contradicts_its_bucket_is_said(tricky: Mapping[str, Any]) -> None:
    assert tricky["latency"]["lifetime"]["e2e"]["problems"]


def test_09_one_scrape_gives_no_window_and_no_rate(tricky: Mapping[str, Any]) -> None:
    assert tricky["latency"]["ttft"] is None
    assert tricky["between_scrapes"] == []


def test_09_a_nan_elsewhere_does_not_hide_the_kv_use(tricky: Mapping[str, Any]) -> None:
    assert tricky["load"]["token_usage_max"] == 0.97


# 11 — frozen counters and a stale gauge


def scrapes(first: str, second: str, apart: float) -> Bundle:
    return bundle(
        answered("metrics_1", (FROZEN / first).read_bytes()),
        answered("metrics_2", (FROZEN / second).read_bytes(), at=apart),
    )


def test_11_a_minute_of_frozen_counters_with_work_is_a_hang() -> None:
    summary = summarise(scrapes("t0.metrics.txt", "t60.metrics.txt", 60.0))
    strongest = summary["strongest_signal"]
    assert summary["health"]["verdict"] == "wedged"
    assert summary["problem_class"] == expected(FROZEN)["problem_class"]
    assert (strongest["id"], strongest["status"]) == ("counters-frozen", "established")
    assert "up to 3 requests" in strongest["says"]
    assert {"idle-capture", "queue-build-up"} <= ids(summary["ruled_out"])


def test_11_two_bundles_a_minute_apart_are_a_hang_too() -> None:
    first = summarise(bundle(answered("metrics_1", (FROZEN / "t0.metrics.txt").read_bytes())))
    second = summarise(
        bundle(answered("metrics_1", (FROZEN / "t60.metrics.txt").read_bytes()), after_seconds=60)
    )
    told = diagnose([first, second])
    assert told["problem_class"] == "hang/timeout"
    assert told["strongest_signal"]["id"] == "wedged-between-bundles"
    assert "60 s apart" in told["strongest_signal"]["says"]


def test_11_the_told_throughput_is_never_reported_as_one() -> None:
    summary = summarise(scrapes("t0.metrics.txt", "t60.metrics.txt", 60.0))
    assert summary["load"]["told_by_metrics"]["throughput_told"] == 512.4
    assert all(rank["throughput"] is None for rank in summary["load"]["per_rank"])
    assert not any("512 tok" in one["says"] for one in summary["signals"])


def test_11_counters_that_fell_are_a_restart_and_give_no_rate() -> None:
    summary = summarise(scrapes("t60.metrics.txt", "t180.metrics.txt", 120.0))
    assert "counter-reset" in ids(summary["signals"])
    assert all(row["per_second"] is None for row in summary["between_scrapes"])
    assert all(row["difference"] is None for row in summary["between_scrapes"])
    assert summary["health"]["verdict"] == "unknown"
    assert "already destroyed the stacks" in summary["production_risk"]


# 12 — eight answers of /server_info


def shape(name: str) -> ServerInfo:
    found = read_server_info("server_info", orjson.loads((SHAPES / name).read_bytes()))
    assert found is not None
    return found


def summary_of_shape(name: str) -> Mapping[str, Any]:
    body = (SHAPES / name).read_bytes()
    return summarise(bundle(answered("model_info", {}), answered("server_info", body)))


@pytest.mark.parametrize(
    ("name", "told", "ranks"),
    [
        ("a_flat_no_internal_states.json", "flat", 1),
        ("b_internal_states_list.json", "list", 2),
        ("c_internal_states_dict.json", "object", 1),
        ("d_new_with_kv_events.json", "list", 1),
        ("e_timeout_variant_empty_states.json", "empty", 0),
    ],
)
def test_12_every_shape_is_read_for_what_it_is(name: str, told: str, ranks: int) -> None:
    info = shape(name)
    assert (info.shape, len(info.ranks)) == (told, ranks)


@pytest.mark.parametrize("name", ["b_internal_states_list.json", "d_new_with_kv_events.json"])
def test_12_kv_cache_of_a_rank_under_its_old_and_new_name(name: str) -> None:
    assert summary_of_shape(name)["capacity"]["kv_cache_gb"] == 40.1


def test_12_rank_0_is_not_taken_for_the_server() -> None:
    summary = summary_of_shape("b_internal_states_list.json")
    told = [one["last_gen_throughput"] for one in summary["capacity"]["per_rank"]]
    assert told == [10.5, 512.0]
    assert "rank-skew" in ids(summary["signals"])


@pytest.mark.parametrize(
    "name", ["d_new_with_kv_events.json", "e_timeout_variant_empty_states.json"]
)
def test_12_missing_ranks_are_said_and_the_settings_stay_valid(name: str) -> None:
    summary = summary_of_shape(name)
    assert "partial-ranks" in ids(summary["signals"])
    assert summary["topology"]["tp_size"] == 8


def http_text(name: str) -> tuple[int, str, bytes]:
    head, _, body = (SHAPES / name).read_bytes().partition(b"\n\n")
    status, kind = head.splitlines()
    return int(status.split()[1]), kind.partition(b": ")[2].decode(), body


@pytest.mark.parametrize(
    ("name", "signal"),
    [
        pytest.param("f_deprecated_path.txt", None, id="404 asks for the old path"),
        pytest.param("g_401.txt", "no-access", id="401 is a key"),
        pytest.param("h_gateway_html_502.txt", "proxy-answered", id="502 is a proxy"),
    ],
)
def test_12_a_server_is_not_down_because_of_an_answer_without_contents(
    name: str, signal: str | None
) -> None:
    status, kind, body = http_text(name)
    asked = answered("server_info", body, status=status, headers={"content-type": kind})
    summary = summarise(bundle(answered("ready"), answered("model_info", {}), asked))
    assert summary["health"]["verdict"] == "unknown"
    assert summary["problem_class"] is None
    assert summary["topology"]["tp_size"] is None
    assert signal is None or signal in ids(summary["signals"])


# 14 — health is red while a long prompt is prefilled


def test_14_a_red_health_over_advancing_prefill_is_busy_not_stuck() -> None:
    status = orjson.loads((LONG_PREFILL / "health.json").read_bytes())["/health"]
    scraped = [
        answered(name, loads(_prefilling(at, tokens), at=at), at=at)
        for name, at, tokens in [("loads_all_1", 0.0, 8192), ("loads_all_2", 12.0, 32768)]
    ]
    summary = summarise(bundle(*scraped, answered("health", status=status, at=13.0, seconds=20.0)))
    assert summary["health"]["verdict"] == "false red"
    assert summary["problem_class"] == expected(LONG_PREFILL)["problem_class"]
    assert summary["ruled_out"][0]["says"].startswith("A hang of the whole scheduler")
    assert any("SGLANG_HEALTH_CHECK_TIMEOUT" in step["text"] for step in summary["next_steps"])
    assert "37 wait" in summary["production_risk"]


def _prefilling(at: float, tokens: int) -> dict[str, Any]:
    return rank(
        at=at,
        age=2.0,
        num_running_reqs=0,
        num_waiting_reqs=37,
        total_prefill_uncached_tokens=tokens,
    )


# 15 — a bundle from a hung server


@pytest.fixture(scope="module")
def hung() -> Mapping[str, Any]:
    return summarise(bundle(*_hung_captures()))


def _hung_captures() -> list[Capture]:
    """In the order in which the public tool asks; it keeps no times."""
    order = [
        ("health", "health.txt"),
        ("model_info", "model_info.json"),
        ("health_generate", "health_generate.txt.error.json"),
        ("server_info", "server_info.json"),
        ("loads_all_1", "loads_all.json"),
        ("loads_core_1", "loads_core_queues_disagg.json"),
        ("hicache", "hicache_storage_backend.json"),
        ("metrics_1", "metrics.txt"),
    ]
    return [_hung_capture(name, (HUNG / file).read_bytes()) for name, file in order]


def _hung_capture(name: str, body: bytes) -> Capture:
    if not body.startswith(b"{"):
        return answered(name, body, at=None)
    told = orjson.loads(body)
    if told["ok"]:
        return answered(name, told["json"], at=None)
    if told["status"] > 0:
        return answered(name, told["error"].encode(), status=told["status"], at=None, seconds=20.0)
    return silent(name, outcome(None, told["error"]), at=None, seconds=10.0)


def test_15_two_failures_that_need_the_scheduler_are_a_hang(hung: Mapping[str, Any]) -> None:
    assert hung["problem_class"] == expected(HUNG)["problem_class"]
    assert hung["strongest_signal"]["id"] == "scheduler-silent"
    assert "503" in hung["strongest_signal"]["says"]


def test_15_it_is_seen_to_go_away_while_it_was_asked(hung: Mapping[str, Any]) -> None:
    [claim] = [one for one in hung["signals"] if one["id"] == "went-away-while-collecting"]
    assert "503 → timeout → error → refused" in claim["says"]
    assert hung["health"]["verdict"] == "gone"
    assert "dying or restarting" in hung["best_guess"]["says"]


def test_15_load_is_unknown_and_never_idle(hung: Mapping[str, Any]) -> None:
    assert hung["load"]["totals"] == {"running": None, "waiting": None}
    assert hung["load"]["told_by_metrics"]["running"] == 1
    assert hung["idle"] is not True
    assert "idle-capture" not in ids(hung["signals"])


def test_15_an_error_is_not_read_as_server_info(hung: Mapping[str, Any]) -> None:
    assert set(hung["topology"].values()) == {None}


def test_15_the_admin_key_of_hicache_is_only_a_note(hung: Mapping[str, Any]) -> None:
    [claim] = [one for one in hung["signals"] if one["id"] == "hicache-needs-admin-key"]
    assert claim["level"] == "note"


def test_15_the_http_side_is_ruled_out_and_nobody_is_told_to_poll(hung: Mapping[str, Any]) -> None:
    assert "http-down" in ids(hung["ruled_out"])
    assert "tacks" in hung["next_steps"][0]["text"]
    assert "High" in hung["production_risk"]
