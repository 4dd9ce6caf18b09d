"""The summary as a document: the keys of the interface, unknown figures, hostile answers."""

from pathlib import Path

import orjson
import pytest

from app.domain.bundle import summarise
from app.domain.capture import Capture
from tests.bundles import answered, bundle, loads, metrics, rank, serving
from tests.captured import ATTACKS, needs

KEYS = {
    "base_url", "collected_at", "frontend", "engine", "version", "health", "model", "topology",
    "capacity", "load", "latency", "endpoints", "signals", "idle", "redacted",
}  # fmt: skip
NAMES = (
    "ready",
    "model_info",
    "server_info",
    "loads_all_1",
    "get_load",
    "metrics_1",
    "hicache",
    "health",
)
HOSTILE = (
    "bigint_100k_digits.json",
    "deep_100k.json",
    "invalid_utf8.json",
    "nan.json",
    "top_level_list.json",
    "top_level_null.json",
    "xss_model_path.json",
)


def test_an_empty_bundle_has_every_key_and_no_figure() -> None:
    summary = summarise(bundle())
    assert summary.keys() >= KEYS
    assert summary["load"]["totals"] == {"running": None, "waiting": None}
    assert summary["idle"] is None
    assert summary["version"] is None
    assert summary["collected_at"] == "2026-03-02T12:00:00Z"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", HOSTILE)
def test_a_hostile_answer_of_one_endpoint_spoils_nothing(file: str, name: str) -> None:
    body = needs(Path(ATTACKS / "json" / file)).read_bytes()
    others: list[Capture] = [one for one in serving(rank()) if one.name != name]
    summary = summarise(bundle(*others, answered(name, body, at=3.0)))
    assert orjson.loads(orjson.dumps(summary))["base_url"] == "http://chat:30000"


def test_an_answer_that_is_no_json_is_a_problem_and_not_a_figure() -> None:
    summary = summarise(bundle(answered("loads_all_1", b"{oops")))
    assert any(one.startswith("loads_all_1: Not JSON") for one in summary["problems"])
    assert summary["load"]["per_rank"] == []


def test_a_very_long_name_of_a_model_is_cut() -> None:
    summary = summarise(bundle(answered("model_info", {"model_path": "m" * 100_000})))
    assert len(summary["model"]["model_path"]) == 300


def test_redacted_places_are_listed_with_their_capture() -> None:
    made = bundle(answered("server_info", {"tp_size": 1}, redacted=["/api_key"]))
    assert summarise(made)["redacted"] == [{"artifact": "server_info", "at": "/api_key"}]


@pytest.mark.parametrize(
    ("body", "engine"),
    [
        pytest.param(metrics(num_running_reqs=1), "sglang", id="sglang"),
        pytest.param(b"vllm:num_requests_running 1\n", "vllm", id="vllm"),
        pytest.param(b"up 1\n", None, id="something else"),
    ],
)
def test_the_engine_is_told_by_its_metrics(body: bytes, engine: str | None) -> None:
    assert summarise(bundle(answered("metrics_1", body)))["engine"] == engine


@pytest.mark.parametrize(
    ("entry", "idle"),
    [
        pytest.param(rank(), True, id="fresh and empty"),
        pytest.param(rank(num_running_reqs=1), False, id="one runs"),
        pytest.param(rank(num_waiting_reqs=None), None, id="waiting not told"),
        pytest.param(rank(age=40.0), None, id="empty, but of long ago"),
    ],
)
def test_idle_is_said_only_of_what_is_known_now(
    entry: dict[str, object], idle: bool | None
) -> None:
    assert summarise(bundle(answered("loads_all_1", loads(entry))))["idle"] is idle


def test_requests_that_came_and_went_between_two_looks_are_not_idle() -> None:
    made = bundle(
        answered("loads_all_1", loads(rank())),
        answered("metrics_1", metrics(num_requests_total=5)),
        answered("metrics_2", metrics(num_requests_total=9), at=10.0),
    )
    assert summarise(made)["idle"] is False


def test_each_endpoint_tells_what_its_answer_means() -> None:
    [row] = summarise(bundle(answered("ready")))["endpoints"]
    assert (row["outcome"], row["status"], row["bytes"]) == ("answered", 200, 0)
    assert row["so"].endswith(".")
