"""How a bundle is told on its page: failures first, unknown never as 0, hostile text harmless."""

from typing import Any

import pytest

from app.store.tables import CaptureRow
from app.web.views.answers import answer_rows, outcomes_told
from app.web.views.bundle_told import LoadTold, SignalsTold, VerdictTold, WindowTold
from app.web.views.load import move_rows, quantile_told, rank_rows
from app.web.views.signals import chips


def capture(name: str, path: str, outcome: str, **more: Any) -> CaptureRow:
    position = more.pop("position", 0)
    return CaptureRow(
        bundle_id=1, name=name, position=position, path=path, outcome=outcome, redacted=[], **more
    )


def rank(number: int, **more: Any) -> dict[str, Any]:
    return {"dp_rank": number, "running": 3, "waiting": 0, "token_usage": 0.5, **more}


def summary_of(*ranks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"load": {"per_rank": list(ranks), "totals": {}}, **more}


def move(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "artifact": "metrics_2",
        "at": name,
        "dp_rank": None,
        "before": 100.0,
        "after": 103.0,
        "difference": 3.0,
        "per_second": 0.3,
        **more,
    }


ANSWERS = [
    capture("ready", "/ready", "answered", status=200, seconds=0.002, position=0),
    capture(
        "hicache", "/hicache/storage-backend", "no access", status=401, seconds=0.1, position=1
    ),
    capture(
        "metrics_1", "/metrics", "answered", status=200, seconds=0.04, size_bytes=10, position=2
    ),
    capture("server_info", "/server_info", "timeout", seconds=5.0, position=3),
    capture(
        "metrics_2", "/metrics", "answered", status=200, seconds=0.06, size_bytes=12, position=4
    ),
    capture("health", "/health", "not asked", detail="Sends a request.", position=5),
    capture("model_info", "/model_info", "answered", status=500, seconds=0.1, position=6),
]


def test_failures_come_first_and_what_is_not_known_last() -> None:
    rows = answer_rows(ANSWERS, {})

    assert [(row.path, row.level) for row in rows] == [
        ("/server_info", "bad"),
        ("/model_info", "bad"),
        ("/ready", "good"),
        ("/metrics", "good"),
        ("/hicache/storage-backend", "unknown"),
        ("/health", "unknown"),
    ]


def test_the_same_endpoint_twice_with_one_answer_is_one_row() -> None:
    [row] = [row for row in answer_rows(ANSWERS, {}) if row.path == "/metrics"]

    assert row.answer == "200, twice"
    assert row.took_seconds == 0.06
    assert row.size_bytes == 22


def test_what_was_not_asked_took_no_time_and_says_why() -> None:
    row = answer_rows(ANSWERS, {})[-1]

    assert (row.took_seconds, row.size_bytes, row.answer) == (None, None, "not asked")
    assert row.so == "Sends a request."
    assert row.probe


def test_an_answer_about_load_with_an_old_rank_is_not_called_good() -> None:
    loads = [capture("loads_all_1", "/v1/loads?include=all", "answered", status=200, seconds=0.1)]

    [row] = answer_rows(loads, summary_of(rank(0, stale=True), rank(1, stale=False)))

    assert (row.level, row.answer) == ("warn", "200, 1 rank old")


def test_endpoints_are_counted_by_how_asking_ended() -> None:
    assert outcomes_told(ANSWERS) == (
        "3 answered, 1 timed out, 1 without access, 1 not asked on purpose"
    )


def test_a_rank_with_work_whose_passes_stood_still_is_stuck() -> None:
    moves = [move("decode_passes_total", dp_rank=0, difference=0.0), move("x", dp_rank=1)]

    first, second = rank_rows(summary_of(rank(0), rank(1), between_scrapes=moves))

    assert (first.stuck, second.stuck) == (True, False)
    assert second.passes is None


def test_a_total_is_not_known_unless_every_rank_is() -> None:
    load = LoadTold.of(summary_of(rank(0), rank(1, running=None)))

    assert load.running is None
    assert load.ranks[1].running is None


def test_a_counter_that_fell_is_not_compared_and_comes_first() -> None:
    summary = {"between_scrapes": [move("sglang:a"), move("sglang:b", difference=None)]}

    rows = move_rows(summary, {"between_scrapes": [move("sglang:a", per_second=7.0)]})

    assert [(row.name, row.difference, row.healthy_per_second) for row in rows] == [
        ("b", None, None),
        ("a", 3.0, 7.0),
    ]


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        pytest.param(None, "not known", id="the-server-tells-none"),
        pytest.param({"n": 0, "p99": None}, "none", id="nothing-in-the-window"),
        pytest.param({"n": 7, "p99": None}, "too few", id="under-twenty"),
        pytest.param({"n": 40, "p99": {"over": 400}}, "over 7 min", id="beyond-the-last-bucket"),
        pytest.param({"n": 40, "p99": 0.92}, "920 ms", id="a-figure"),
        pytest.param({"n": 40, "p99": 0.00042}, "420 µs", id="a-very-small-one"),
    ],
)
def test_a_quantile_is_told_or_the_reason_why_not(
    figures: dict[str, Any] | None, told: str
) -> None:
    assert quantile_told(figures, "p99") == told


def test_latency_of_the_window_stands_beside_the_healthy_one_and_the_lifetime() -> None:
    figures = {"n": 25, "mean": 0.5, "p50": 0.4, "p90": 0.8, "p99": 1.2}
    told = {"window_seconds": 10.0, "ttft": figures, "lifetime": {"ttft": {**figures, "mean": 9}}}
    healthy = {"latency": {"ttft": {**figures, "mean": 0.1}}}

    rows = WindowTold.of({"latency": told}, healthy).latencies

    [row] = rows
    assert (row.name, row.samples) == ("time to first token", 25)
    assert row.window == ("500 ms", "400 ms", "800 ms", "1.2 s")
    assert row.healthy == ("100 ms", "400 ms", "800 ms", "1.2 s")
    assert row.since_start == "9 s"


@pytest.mark.parametrize(
    ("verdict", "level", "look"),
    [
        ("healthy", "good", ""),
        ("busy", "good", ""),
        ("wedged", "bad", "bad"),
        ("false green", "bad", "bad"),
        ("gone", "bad", "bad"),
        ("false red", "warn", ""),
        ("starting", "warn", ""),
        ("unknown", "unknown", "unknown"),
        ("something new", "warn", ""),
    ],
)
def test_only_a_dead_server_is_red_and_only_a_serving_one_has_the_good_mark(
    verdict: str, level: str, look: str
) -> None:
    told = VerdictTold.of({"health": {"verdict": verdict, "says": "x"}}, ANSWERS)

    assert (told.level, told.look) == (level, look)


@pytest.mark.parametrize(
    ("summary", "says"),
    [
        pytest.param({"idle": None}, "not known", id="not-known"),
        pytest.param({"idle": True}, "Collect again under traffic", id="idle"),
        pytest.param({"idle": False}, "Taken under load", id="loaded"),
    ],
)
def test_whether_it_was_idle_is_said(summary: dict[str, Any], says: str) -> None:
    assert says in VerdictTold.of(summary, ANSWERS).idle


def test_a_chip_leads_to_the_capture_and_the_place() -> None:
    evidence = [{"artifact": "loads_all_1.json", "at": "/loads/5"}, {"artifact": "ready", "at": ""}]

    first, second = chips({"evidence": evidence})

    assert (first.capture, first.at, first.text) == (
        "loads_all_1",
        "/loads/5",
        "loads_all_1 /loads/5",
    )
    assert (second.capture, second.text) == ("ready", "ready")


def test_texts_of_a_target_keep_neither_controls_nor_their_length() -> None:
    claim = {"id": "x", "level": "bad", "status": "established", "says": "\x1b[31m" + "a" * 5000}

    [row] = SignalsTold.of({"signals": [claim]}).rows

    assert row.says.startswith("\\x1b[31m")
    assert len(row.says) < 1000


def test_ranks_that_moved_are_folded_and_the_one_that_did_not_stands_out() -> None:
    still = move("decode_passes_total", dp_rank=1, difference=0.0)
    moves = [move("a"), move("decode_passes_total", dp_rank=0), still]

    window = WindowTold.of(summary_of(rank(0), rank(1), between_scrapes=moves), {})

    assert [row.name for row in window.moves] == ['decode_passes_total{dp_rank="1"}', "a"]
    assert [row.name for row in window.crowd] == ['decode_passes_total{dp_rank="0"}']
