"""Each rule: when it claims, when it stays quiet, when it could not look."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.domain.bundle import summarise
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.claims import Claim
from app.domain.observed import observe
from app.domain.signals.rules import RULES
from tests.bundles import answered, bundle, histogram, loads, metrics, rank, serving, silent

DOCUMENT = Path(__file__).parents[2] / "docs" / "signals.md"
TTFT, QUEUE = "time_to_first_token_seconds", "queue_time_seconds"
BUSY = {"num_running_reqs": 3}


def claims_of(made: Bundle, baseline: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in summarise(made, baseline=baseline)["signals"]}


def state_of(rule: str, made: Bundle, baseline: dict[str, Any] | None = None) -> str:
    """How the rule came back: "claims", "quiet" or "not checked"."""
    summary = summarise(made, baseline=baseline)
    names = {"signals": "claims", "quiet": "quiet", "not_checked": "not checked"}
    [found] = [word for key, word in names.items() if rule in {one["id"] for one in summary[key]}]
    return found


def two_scrapes(before: bytes, after: bytes, *others: Capture, apart: float = 10.0) -> Bundle:
    return bundle(answered("metrics_1", before), answered("metrics_2", after, at=apart), *others)


def documented() -> set[str]:
    text = DOCUMENT.read_text().partition("## Over several bundles")[0]
    return set(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE))


def test_every_rule_is_documented_and_every_documented_rule_exists() -> None:
    seen = observe(bundle())
    assert {rule(seen).id for rule in RULES} == documented()


def test_the_ids_that_other_programs_rely_on_exist() -> None:
    relied_on = {
        "not-one-server",
        "secrets-exposed-by-server",
        "snapshot-stale",
        "counters-frozen",
        "rank-skew",
        "idle-capture",
        "queue-build-up",
        "kv-pressure",
        "ttft-high-queue-short",
        "generate-fails-health-ok",
        "rust-ingress-no-api-key",
        "metrics-off",
    }
    assert relied_on <= documented()


def test_every_rule_comes_back_exactly_once() -> None:
    summary = summarise(bundle(*serving(rank())))
    found = [one["id"] for key in ("signals", "quiet", "not_checked") for one in summary[key]]
    assert sorted(found) == sorted(documented())
    assert summary["rules"] == len(RULES)


def test_a_rule_without_evidence_is_not_checked_and_never_quiet() -> None:
    assert summarise(bundle())["quiet"] == []


@pytest.mark.parametrize(
    "made",
    [
        bundle(*serving(rank(age=70.0, **BUSY))),
        bundle(*serving(rank(num_running_reqs=1, num_waiting_reqs=40, token_usage=0.97))),
        two_scrapes(metrics(num_requests_total=9), metrics(num_requests_total=2)),
    ],
    ids=["stale", "full", "reset"],
)
def test_every_claim_names_a_place(made: Bundle) -> None:
    for claim in claims_of(made).values():
        assert claim["evidence"]
        assert claim["says"].endswith(".")


# Who answered


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(
            bundle(
                answered("loads_all_1", loads(rank())),
                answered("loads_all_2", loads(rank(), rank(1))),
            ),
            id="another set of ranks",
        ),
        pytest.param(
            bundle(
                answered("server_info", {"tp_size": 1, "version": "0.5.21"}),
                answered("loads_all_1", loads(rank())),
            ),
            id="another version",
        ),
        pytest.param(
            two_scrapes(
                b'sglang:startup_time_seconds{phase="scheduler_e2e"} 4.6\n',
                b'sglang:startup_time_seconds{phase="scheduler_e2e"} 9.1\n',
            ),
            id="another start",
        ),
        pytest.param(
            two_scrapes(metrics(num_requests_total=90), metrics(num_requests_total=40)),
            id="counters fell within ten seconds",
        ),
    ],
)
def test_answers_of_several_servers_give_no_window(made: Bundle) -> None:
    summary = summarise(made)
    assert "not-one-server" in {one["id"] for one in summary["signals"]}
    assert all(row["per_second"] is None for row in summary["between_scrapes"])
    assert summary["latency"]["ttft"] is None
    assert summary["progress"]["moved"] is None


@pytest.mark.parametrize(("dp_size", "state"), [(1, "claims"), (2, "quiet")])
def test_the_start_of_one_rank_is_not_compared_with_that_of_all(dp_size: int, state: str) -> None:
    info = {"tp_size": 1, "dp_size": dp_size, "startup_time": {"scheduler_e2e": 4.0}}
    told = b'sglang:startup_time_seconds{phase="scheduler_e2e"} 8.0\n'
    made = bundle(answered("server_info", info), answered("metrics_1", told))
    assert state_of("not-one-server", made) == state


def test_a_counter_that_fell_over_minutes_is_a_restart_of_one_server() -> None:
    made = two_scrapes(metrics(num_requests_total=90), metrics(num_requests_total=4), apart=120.0)
    assert state_of("not-one-server", made) == "quiet"
    assert claims_of(made)["counter-reset"]["status"] == "established"


def test_a_gateway_that_answers_for_the_server_is_named() -> None:
    made = bundle(answered("server_info", {"workers": ["http://10.0.0.1:30000"]}))
    assert claims_of(made)["proxy-answered"]["status"] == "supported"


# Did it stop


def test_a_silent_scheduler_is_only_supported_until_a_probe_fails_too() -> None:
    captures = [answered("model_info", {}), silent("server_info", at=1.0)]
    failed = answered("health", status=503, at=20.0, seconds=20.0)
    assert claims_of(bundle(*captures))["scheduler-silent"]["status"] == "supported"
    assert claims_of(bundle(*captures, failed))["scheduler-silent"]["status"] == "established"


def test_a_server_that_answers_again_after_refusing_did_not_go_away() -> None:
    made = bundle(
        answered("ready"),
        silent("model_info", Outcome.REFUSED, at=1.0),
        answered("metrics_1", at=2.0),
    )
    assert state_of("went-away-while-collecting", made) == "quiet"


def test_health_green_over_a_failed_generation_is_established_by_503() -> None:
    made = bundle(answered("health"), answered("health_generate", status=503, at=1.0, seconds=20.0))
    assert claims_of(made)["generate-fails-health-ok"]["status"] == "established"


def test_health_endpoints_that_agree_are_no_signal() -> None:
    made = bundle(answered("health", status=503, seconds=20.0), answered("ready", status=503))
    assert state_of("generate-fails-health-ok", made) == "quiet"


def test_one_stale_rank_beside_fresh_ones_is_named() -> None:
    claim = claims_of(bundle(*serving(rank(0), rank(1, age=12.0))))["snapshot-stale"]
    assert claim["says"].startswith("The load snapshot of DP1 is 12.0 s old while other ranks")
    assert claim["evidence"][0]["at"] == "/loads/1/timestamp"


def test_frozen_counters_of_ended_requests_alone_are_a_hypothesis_for_ten_seconds() -> None:
    told = metrics(num_running_reqs=2, num_queue_reqs=0, generation_tokens_total=7)
    assert claims_of(two_scrapes(told, told))["counters-frozen"]["status"] == "hypothesis"


def test_frozen_passes_of_the_model_are_supported_for_ten_seconds() -> None:
    told = metrics(num_running_reqs=2, num_queue_reqs=0, cuda_graph_passes_total=7)
    assert claims_of(two_scrapes(told, told))["counters-frozen"]["status"] == "supported"


def ranks_after_ten_seconds(*, second_moved: bool) -> Bundle:
    """Two DP ranks of a version whose snapshots carry no time; their passes are counted."""

    def passes(first: int, second: int) -> bytes:
        name = "sglang:cuda_graph_passes_total"
        return f'{name}{{dp_rank="0"}} {first}\n{name}{{dp_rank="1"}} {second}\n'.encode()

    at_work = [
        {
            key: value
            for key, value in rank(number, num_running_reqs=8).items()
            if key != "timestamp"
        }
        for number in (0, 1)
    ]
    return bundle(
        answered("metrics_1", passes(100, 100)),
        answered("loads_all_1", loads(*at_work)),
        answered("metrics_2", passes(500, 480 if second_moved else 100), at=10.0),
        answered("loads_all_2", loads(*at_work, at=10.0), at=10.0),
    )


def test_a_rank_that_stands_still_while_another_moves_is_named() -> None:
    made = ranks_after_ten_seconds(second_moved=False)
    claim = claims_of(made)["rank-without-progress"]
    assert claim["says"].startswith("DP1: requests inside, and nothing moved for 10 s")
    assert claim["status"] == "supported"
    assert summarise(made)["health"]["verdict"] == "unknown"


def test_ranks_that_all_move_are_quiet() -> None:
    made = ranks_after_ten_seconds(second_moved=True)
    assert state_of("rank-without-progress", made) == "quiet"
    assert summarise(made)["health"]["verdict"] in ("healthy", "busy")


def test_frozen_counters_without_work_are_quiet() -> None:
    told = metrics(num_running_reqs=0, num_queue_reqs=0, generation_tokens_total=7)
    assert state_of("counters-frozen", two_scrapes(told, told, apart=90.0)) == "quiet"


# Work


def queue(waiting: int | None, running: int = 2) -> Bundle:
    return bundle(*serving(rank(num_running_reqs=running, num_waiting_reqs=waiting)))


HEALTHY = {"load": {"totals": {"running": 2, "waiting": 3}, "token_usage_max": 0.5}}


@pytest.mark.parametrize(
    ("waiting", "baseline", "state"),
    [
        pytest.param(40, None, "claims", id="many, nothing to compare"),
        pytest.param(40, HEALTHY, "claims", id="many more than when healthy"),
        pytest.param(40, {**HEALTHY, "idle": True}, "claims", id="the healthy one was idle"),
        pytest.param(6, HEALTHY, "quiet", id="twice as many as when healthy"),
        pytest.param(3, None, "quiet", id="a few"),
        pytest.param(0, None, "quiet", id="none"),
        pytest.param(None, None, "not checked", id="not told"),
    ],
)
def test_a_queue_is_high_against_the_healthy_bundle(
    waiting: int | None, baseline: dict[str, Any] | None, state: str
) -> None:
    assert state_of("queue-build-up", queue(waiting), baseline) == state


@pytest.mark.parametrize(
    ("baseline", "status"),
    [
        pytest.param(None, "hypothesis", id="none"),
        pytest.param({**HEALTHY, "idle": True}, "hypothesis", id="an idle one"),
        pytest.param(HEALTHY, "supported", id="one under load"),
    ],
)
def test_high_is_a_hypothesis_without_a_healthy_bundle(
    baseline: dict[str, Any] | None, status: str
) -> None:
    full = bundle(*serving(rank(num_running_reqs=2, num_waiting_reqs=40, token_usage=0.97)))
    found = claims_of(full, baseline)
    assert {found[name]["status"] for name in ("queue-build-up", "kv-pressure")} == {status}


def test_a_full_pool_of_a_hybrid_model_counts_though_token_usage_is_low() -> None:
    made = bundle(answered("metrics_1", metrics(token_usage=0.2, swa_token_usage=0.95)))
    assert claims_of(made)["kv-pressure"]["evidence"][0]["at"] == "sglang:swa_token_usage"


def test_a_full_cache_that_is_as_full_when_healthy_is_quiet() -> None:
    made = bundle(*serving(rank(token_usage=0.95)))
    assert state_of("kv-pressure", made, {"load": {"token_usage_max": 0.93}}) == "quiet"


def test_retracted_requests_in_the_window_are_established() -> None:
    made = two_scrapes(
        metrics(num_retracted_requests_total=4), metrics(num_retracted_requests_total=9)
    )
    assert "5 in the window" in claims_of(made)["retraction"]["says"]


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        pytest.param((20, 10), (2, 0), "claims", id="one rank holds the work"),
        pytest.param((3, 6), (3, 0), "claims", id="requests wait at one rank alone"),
        pytest.param((8, 2), (7, 3), "quiet", id="even"),
        pytest.param((3, 0), (0, 0), "quiet", id="few"),
    ],
)
def test_work_that_is_uneven_between_ranks(
    first: tuple[int, int], second: tuple[int, int], state: str
) -> None:
    ranks = [
        rank(number, num_running_reqs=running, num_waiting_reqs=waiting)
        for number, (running, waiting) in enumerate((first, second))
    ]
    assert state_of("rank-skew", bundle(*serving(*ranks))) == state
    assert state_of("rank-skew", bundle(*serving(*reversed(ranks)))) == state


def test_one_rank_alone_cannot_be_uneven() -> None:
    assert state_of("rank-skew", bundle(*serving(rank()))) == "not checked"


@pytest.mark.parametrize(
    ("switch", "usage", "running", "state"),
    [
        pytest.param(True, 0.8, 1, "claims", id="much held, little running"),
        pytest.param(True, 0.8, 20, "quiet", id="much running"),
        pytest.param(False, 0.8, 1, "quiet", id="sessions off"),
    ],
)
def test_sessions_that_hold_the_cache(switch: bool, usage: float, running: int, state: str) -> None:
    info = {"enable_session_radix_cache": switch}
    made = bundle(*serving(rank(token_usage=usage, num_running_reqs=running), info=info))
    assert state_of("sessions-held-open", made) == state


# Time


def slow(ttft: float, queued: float, count: int = 10) -> Bundle:
    before = histogram(TTFT, 0, 0.0, le_1_0=0) + histogram(QUEUE, 0, 0.0, le_1_0=0)
    after = histogram(TTFT, count, ttft * count) + histogram(QUEUE, count, queued * count)
    return two_scrapes(before, after)


FAST = {"latency": {"ttft": {"mean": 0.4}}}


@pytest.mark.parametrize(
    ("made", "baseline", "state"),
    [
        pytest.param(slow(4.0, 0.05), None, "claims", id="slow, nothing to compare"),
        pytest.param(slow(1.2, 0.05), FAST, "claims", id="three times the healthy one"),
        pytest.param(slow(1.2, 0.05), None, "quiet", id="not slow in itself"),
        pytest.param(slow(4.0, 3.5), None, "quiet", id="the queue explains it"),
        pytest.param(slow(4.0, 0.05, count=2), None, "not checked", id="two samples"),
        pytest.param(bundle(), None, "not checked", id="no metrics"),
    ],
)
def test_first_tokens_that_are_late_though_the_queue_is_short(
    made: Bundle, baseline: dict[str, Any] | None, state: str
) -> None:
    assert state_of("ttft-high-queue-short", made, baseline) == state


# Access

KEYS = {
    "tp_size": 1,
    "api_key": "‹redacted:ab12cd34›",
    "launch_command": "--api-key ‹redacted:ab12cd34›",
}


def test_exposed_secrets_are_named_by_place_and_never_by_value() -> None:
    made = bundle(answered("server_info", KEYS, redacted=["/api_key", "/launch_command"]))
    claim = claims_of(made)["secrets-exposed-by-server"]
    assert {place["at"] for place in claim["evidence"]} == {"/api_key", "/launch_command"}
    assert {place["value"] for place in claim["evidence"]} == {None}
    assert "redacted" not in str(claim)


def test_keys_that_sglang_masks_itself_are_not_exposed() -> None:
    info = {"tp_size": 1, "watermark_key": "<redacted>", "api_key": None}
    made = bundle(answered("server_info", info, redacted=["/watermark_key"]))
    assert state_of("secrets-exposed-by-server", made) == "quiet"


@pytest.mark.parametrize(
    ("info", "level"),
    [
        pytest.param({**KEYS, "frontend": "rust"}, "bad", id="a key that is not checked"),
        pytest.param({"tp_size": 1, "api_key": None, "frontend": "rust"}, "note", id="no key"),
        pytest.param(None, "warn", id="settings not known"),
    ],
)
def test_the_rust_ingress_checks_no_key(info: dict[str, Any] | None, level: str) -> None:
    told = answered("server_info", info) if info else silent("server_info")
    made = bundle(answered("ready", status=404), told)
    assert claims_of(made)["rust-ingress-no-api-key"]["level"] == level


def test_metrics_that_are_off_name_the_flag() -> None:
    summary = summarise(bundle(answered("ready"), answered("metrics_1", status=404)))
    assert "--enable-metrics" in str(summary["next_steps"])


def test_metrics_that_were_not_answered_are_not_said_to_be_off() -> None:
    assert state_of("metrics-off", bundle(answered("ready"), silent("metrics_1"))) == "not checked"


def test_the_most_severe_and_best_proven_claim_comes_first() -> None:
    levels = [
        one["level"] for one in summarise(bundle(*serving(rank(age=70.0, **BUSY))))["signals"]
    ]
    assert levels == sorted(levels, key=["bad", "warn", "note"].index)


def test_a_rule_returns_a_claim_that_is_its_own() -> None:
    seen = observe(bundle(*serving(rank(age=70.0, **BUSY))))
    found = [ruling for rule in RULES if isinstance(ruling := rule(seen), Claim)]
    assert "snapshot-stale" in {one.id for one in found}


def test_a_server_that_went_away_is_told_by_the_course_of_its_answers() -> None:
    made = bundle(
        answered("ready"),
        answered("health", status=503, at=1.0, seconds=20.0),
        silent("server_info", at=21.0),
        silent("loads_all_1", Outcome.ERROR, at=26.0),
        silent("metrics_2", Outcome.REFUSED, at=27.0),
    )
    claim = claims_of(made)["went-away-while-collecting"]
    assert "200 → 503 → timeout → error → refused:" in claim["says"]
    assert claim["status"] == "established"
