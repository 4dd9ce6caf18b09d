"""Whether anything moved between two looks, of the whole server and of each rank."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.bundle import summarise
from app.domain.capture import Bundle
from app.domain.observed import observe
from app.domain.progress import Progress
from tests.bundles import answered, bundle, loads, metrics, rank

WORK = metrics(num_running_reqs=2, num_queue_reqs=0, generation_tokens_total=7)


def moved(made: Bundle) -> Progress:
    return observe(made).progress


def scrapes(before: bytes, after: bytes, at: float | None = 10.0) -> Bundle:
    first = None if at is None else 0.0
    return bundle(answered("metrics_1", before, at=first), answered("metrics_2", after, at=at))


def passes(first: int, second: int) -> bytes:
    name = "sglang:cuda_graph_passes_total"
    return f'{name}{{dp_rank="0"}} {first}\n{name}{{dp_rank="1"}} {second}\n'.encode()


@pytest.mark.parametrize(
    ("made", "window"),
    [
        pytest.param(scrapes(WORK, WORK), 10.0, id="by their starts"),
        pytest.param(
            replace(scrapes(WORK, WORK, at=None), interval_seconds=12.0), 12.0, id="as planned"
        ),
        pytest.param(scrapes(WORK, WORK, at=None), None, id="not known"),
        pytest.param(bundle(answered("metrics_1", WORK)), None, id="one scrape"),
    ],
)
def test_the_window_is_between_the_starts_of_the_two_scrapes(
    made: Bundle, window: float | None
) -> None:
    assert moved(made).window_seconds == window


def test_frozen_counters_of_unknown_distance_give_no_duration() -> None:
    seen = moved(scrapes(WORK, WORK, at=None))
    assert (seen.moved, seen.quiet_seconds) == (False, None)


def test_two_scrapes_in_one_instant_say_nothing() -> None:
    assert moved(scrapes(WORK, WORK, at=0.2)).moved is None


def test_two_snapshots_in_one_instant_say_nothing() -> None:
    entry = rank(num_running_reqs=1, total_prefill_uncached_tokens=5)
    made = bundle(
        answered("loads_all_1", loads(entry)), answered("loads_core_1", loads(entry, at=0.03))
    )
    assert moved(made).moved is None


def test_a_rank_that_stands_still_is_seen_among_those_that_move() -> None:
    ranks = [rank(0, num_running_reqs=3), rank(1, num_running_reqs=3)]
    made = bundle(
        answered("loads_all_1", loads(*ranks)),
        answered("metrics_1", passes(100, 100)),
        answered("metrics_2", passes(400, 100), at=61.0),
    )
    quiet = {one.dp_rank: one.quiet_seconds for one in moved(made).ranks}
    assert quiet == {0: 0.0, 1: 61.0}
    assert summarise(made)["health"]["row"] == "partly-wedged"


def test_a_rank_that_moved_is_not_quiet_whatever_its_snapshot_says() -> None:
    made = bundle(
        answered("loads_all_1", loads(rank(age=70.0, num_running_reqs=1), rank(1))),
        answered("metrics_1", passes(1, 1)),
        answered("metrics_2", passes(9, 1), at=10.0),
    )
    assert moved(made).ranks[0].quiet_seconds == 0.0


def test_decode_passes_of_the_loads_show_movement_without_metrics() -> None:
    def look(at: float, count: int) -> dict[str, Any]:
        return loads(rank(at=at, num_running_reqs=1, decode_moments=[count, 0, 0, 0, 0, 0]), at=at)

    made = bundle(
        answered("loads_all_1", look(0.0, 5)), answered("loads_all_2", look(10.0, 55), at=10.0)
    )
    [move] = [one for one in moved(made).moves if one.name == "decode_passes_total"]
    assert (move.difference, move.seconds, move.at) == (50.0, 10.0, "/loads/0")


def test_a_snapshot_that_was_not_published_again_is_dated_by_the_answers() -> None:
    def look(at: float) -> dict[str, Any]:
        old = rank(at=0.0, age=3.0, num_running_reqs=1, total_prefill_uncached_tokens=5)
        return loads(old, at=at)

    made = bundle(answered("loads_all_1", look(0.0)), answered("loads_all_2", look(10.0), at=10.0))
    seen = moved(made)
    assert (seen.moved, seen.quiet_seconds) == (False, 13.0)


def test_a_rank_that_appears_in_between_is_not_compared() -> None:
    counted = {"total_prefill_uncached_tokens": 5}
    made = bundle(
        answered("loads_all_1", loads(rank(0, **counted))),
        answered("loads_all_2", loads(rank(0, **counted), rank(1, **counted), at=10.0), at=10.0),
    )
    assert {one.dp_rank for one in moved(made).moves} == {0}


def test_get_load_is_used_where_the_new_endpoint_is_missing() -> None:
    made = bundle(
        answered("loads_all_1", status=404),
        answered("get_load", [{"dp_rank": 0, "num_reqs": 4, "num_waiting_reqs": 1}]),
    )
    summary = summarise(made)
    assert summary["load"]["totals"] == {"running": 3, "waiting": 1}
    assert summary["health"]["verdict"] == "busy"


def test_gauges_that_are_not_told_are_no_idle_server() -> None:
    assert moved(bundle(answered("metrics_1", b"up 1\n"))).work is None


def test_requests_that_moved_are_told_apart_from_passes_of_a_probe() -> None:
    before, after = metrics(cuda_graph_passes_total=1), metrics(cuda_graph_passes_total=2)
    seen = moved(scrapes(before, after))
    assert (seen.moved, seen.requests_moved) == (True, None)
