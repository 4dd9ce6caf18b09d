"""Load of the ranks, over the versions of /v1/loads and /get_load."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.loads import Loads, read_loads
from tests.bundles import NOON, loads, rank

COUNT = st.integers(min_value=0, max_value=10_000)


def read(value: object) -> Loads:
    found = read_loads("loads_all_1", value)
    assert found is not None
    return found


@given(st.lists(st.tuples(COUNT, COUNT), min_size=1, max_size=8), st.randoms())
def test_the_order_of_ranks_never_changes_a_total(told: list[tuple[int, int]], random: Any) -> None:
    ranks = [
        rank(number, num_running_reqs=running, num_waiting_reqs=waiting)
        for number, (running, waiting) in enumerate(told)
    ]
    shuffled = random.sample(ranks, len(ranks))
    for body in (loads(*ranks), loads(*shuffled)):
        assert read(body).total("running", len(told)) == sum(one for one, _ in told)
        assert read(body).total("waiting", len(told)) == sum(one for _, one in told)


@given(st.lists(COUNT, min_size=1, max_size=8))
def test_a_rank_without_figures_makes_the_total_unknown(told: list[int]) -> None:
    ranks = [rank(number, num_running_reqs=one) for number, one in enumerate(told)]
    unknown = rank(len(told), num_running_reqs=None)
    assert read(loads(*ranks, unknown)).total("running", None) is None


@pytest.mark.parametrize(
    ("numbers", "expected", "total"),
    [
        pytest.param([0, 1], 2, 6, id="all of two"),
        pytest.param([0], 2, None, id="one of two"),
        pytest.param([1], None, None, id="rank 1 alone: rank 0 is missing"),
        pytest.param([0, 1], None, 6, id="the server does not say how many"),
        pytest.param([0, 0, 1], 2, 6, id="a rank told twice counts once"),
        pytest.param([], None, None, id="no rank at all"),
    ],
)
def test_a_total_needs_every_rank(
    numbers: list[int], expected: int | None, total: int | None
) -> None:
    ranks = [rank(number, num_running_reqs=3) for number in numbers]
    assert read(loads(*ranks)).total("running", expected) == total


@pytest.mark.parametrize(
    ("age", "told"),
    [
        pytest.param(71.8, 71.8, id="old"),
        pytest.param(-0.4, 0.0, id="a little from the future"),
        pytest.param(-30.0, None, id="clocks differ"),
    ],
)
def test_the_age_of_a_snapshot_is_that_of_the_answer_minus_its_own(
    age: float, told: float | None
) -> None:
    found = read(loads(rank(age=age)))
    assert found.ranks[0].age_seconds == told
    assert bool(found.problems) is (told is None)


def test_a_version_without_snapshot_times_has_no_age() -> None:
    entry = {key: value for key, value in rank().items() if key != "timestamp"}
    assert read(loads(entry)).ranks[0].age_seconds is None


def test_the_aggregate_of_0_5_9_is_not_used_but_tells_that_the_scheduler_answered() -> None:
    body = loads(rank(num_running_reqs=2), aggregate={"total_running_reqs": 99}, dp_rank_count=1)
    found = read(body)
    assert found.live
    assert found.total("running", None) == 2


def test_the_bootstrap_queue_has_one_name_over_all_versions() -> None:
    old = rank(disaggregation={"mode": "prefill", "prefill_prealloc_queue_reqs": 4})
    section = read(loads(old)).ranks[0].disaggregation
    assert section == {"mode": "prefill", "prefill_bootstrap_queue_reqs": 4}


def test_get_load_counts_the_waiting_ones_among_all() -> None:
    found = read([{"dp_rank": 0, "num_reqs": 7, "num_waiting_reqs": 2, "num_tokens": 50}])
    assert (found.ranks[0].running, found.ranks[0].waiting) == (5, 2)


def test_moments_that_are_null_beside_a_prefill_counter_mean_none_decoded_yet() -> None:
    new = read(loads(rank(total_prefill_uncached_tokens=0, decode_moments=None))).ranks[0]
    old = read(loads(rank())).ranks[0]
    assert (new.decode_passes_total, old.decode_passes_total) == (0.0, None)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"loads": None},
        {"loads": [None, 3, "x", {"dp_rank": []}]},
        {"timestamp": "yesterday", "loads": [{"timestamp": "x", "num_running_reqs": "many"}]},
        {"timestamp": 1e300, "loads": [{"num_running_reqs": -1, "decode_moments": [1]}]},
        [{"num_reqs": "x"}],
    ],
    ids=repr,
)
def test_nonsense_gives_unknown_figures_and_never_raises(value: Any) -> None:
    found = read_loads("loads_all_1", value)
    if found is not None:
        assert found.total("running", None) is None


def test_more_ranks_than_can_be_are_cut_and_their_total_is_unknown() -> None:
    found = read(loads(*({"dp_rank": number, "num_running_reqs": 1} for number in range(5000))))
    assert len(found.ranks) == 1024
    assert found.total("running", None) is None


def test_times_are_read_as_numbers_and_as_text() -> None:
    body: Mapping[str, Any] = {**loads(rank(age=3.0)), "timestamp": NOON.timestamp()}
    assert read(body).ranks[0].age_seconds == pytest.approx(3.0)
