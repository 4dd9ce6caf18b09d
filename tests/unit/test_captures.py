"""Summaries of what a real SGLang 0.5.23 answered: idle, loaded, frozen, with keys, in Rust."""

from typing import Any

import orjson
import pytest

from app.domain.bundle import summarise
from tests.captured import HTTP, captured, ids

SCENARIOS = sorted(path.name for path in HTTP.iterdir()) if HTTP.exists() else ["idle_fresh"]


def summary_of(scenario: str) -> dict[str, Any]:
    return summarise(captured(scenario))


@pytest.mark.parametrize(
    ("scenario", "verdict", "problem_class"),
    [
        ("idle_fresh", "healthy", None),
        ("under_load", "busy", None),
        ("sigstop_scheduler", "wedged", "hang/timeout"),
        ("tp2_tp1_stopped_user", "unknown", "hang/timeout"),
        ("tp2_after_cont_user", "busy", None),
        ("tp2_keys_user", "healthy", None),
        ("tp2_keys_wrong", "healthy", None),
        ("tp2_keys_none", "unknown", None),
        ("tp2_busy_admin", "unknown", None),
        ("rust_idle", "healthy", None),
        ("rust_busy", "busy", None),
    ],
)
def test_the_verdict_on_each_captured_server(
    scenario: str, verdict: str, problem_class: str | None
) -> None:
    summary = summary_of(scenario)
    assert (summary["health"]["verdict"], summary["problem_class"]) == (verdict, problem_class)


def test_an_idle_server_is_said_to_be_idle_with_what_to_do() -> None:
    summary = summary_of("idle_fresh")
    assert summary["idle"] is True
    assert "idle-capture" in ids(summary["signals"])
    assert any("under traffic" in step["text"] for step in summary["next_steps"])


def test_a_loaded_server_tells_its_load_and_its_room() -> None:
    summary = summary_of("under_load")
    assert summary["load"]["totals"] == {"running": 16, "waiting": 46}
    assert summary["capacity"]["max_total_num_tokens"] == 16384
    assert summary["capacity"]["graph_gb"] == 0.0
    assert summary["model"]["served_model_name"] == "tiny-random"
    assert summary["idle"] is False


def test_a_long_queue_without_a_healthy_bundle_is_only_a_hypothesis() -> None:
    claims = {one["id"]: one for one in summary_of("under_load")["signals"]}
    assert claims["queue-build-up"]["status"] == "hypothesis"


def test_a_frozen_scheduler_is_seen_by_the_age_of_its_snapshot_and_its_silence() -> None:
    summary = summary_of("sigstop_scheduler")
    assert {"snapshot-stale", "scheduler-silent"} <= ids(summary["signals"])
    assert summary["load"]["per_rank"][0]["age_seconds"] == pytest.approx(71.8, abs=0.1)
    assert summary["idle"] is False
    assert "stacks" in summary["next_steps"][0]["text"]


def test_the_throughput_of_a_frozen_scheduler_is_only_told() -> None:
    [rank] = summary_of("sigstop_scheduler")["load"]["per_rank"]
    assert (rank["throughput"], rank["throughput_told"]) == (None, 127.68)


def test_a_missing_key_is_no_access_and_no_secret_is_claimed() -> None:
    summary = summary_of("tp2_keys_none")
    assert "no-access" in ids(summary["signals"])
    assert "secrets-exposed-by-server" in ids(summary["not_checked"])
    assert summary["load"]["totals"] == {"running": None, "waiting": None}
    assert summary["topology"]["tp_size"] is None


def test_the_user_key_is_enough_to_see_that_the_server_gives_its_keys_away() -> None:
    summary = summary_of("tp2_keys_user")
    [claim] = [one for one in summary["signals"] if one["id"] == "secrets-exposed-by-server"]
    assert {"/api_key", "/admin_api_key", "/internal_states/0/admin_api_key"} <= {
        place["at"] for place in claim["evidence"]
    }


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_key_is_anywhere_in_a_summary(scenario: str) -> None:
    text = orjson.dumps(summary_of(scenario))
    assert b"sk-user-111" not in text
    assert b"sk-admin-222" not in text


@pytest.mark.parametrize("scenario", ["rust_idle", "rust_busy"])
def test_the_rust_ingress_is_recognised_and_known_to_check_no_key(scenario: str) -> None:
    summary = summary_of(scenario)
    assert summary["frontend"] == "rust"
    assert "rust-ingress-no-api-key" in ids(summary["signals"])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_evidence_points_at_a_capture_of_the_bundle(scenario: str) -> None:
    made = captured(scenario)
    names = {one.name for one in made.captures}
    summary = summarise(made)
    for claim in (*summary["signals"], *summary["quiet"], *summary["ruled_out"]):
        assert {place["artifact"] for place in claim["evidence"]} <= names


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_json_pointers_of_evidence_lead_to_the_value(scenario: str) -> None:
    made = captured(scenario)
    for claim in summarise(made)["signals"]:
        for place in claim["evidence"]:
            capture = made.capture(place["artifact"])
            if place["at"].startswith("/") and "*" not in place["at"]:
                assert capture is not None
                found = orjson.loads(capture.body)
                for key in place["at"].split("/")[1:]:
                    found = found[int(key)] if isinstance(found, list) else found[key]
                assert place["value"] in (None, found)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_summary_is_plain_json(scenario: str) -> None:
    summary = summary_of(scenario)
    assert orjson.loads(orjson.dumps(summary)) == summary
