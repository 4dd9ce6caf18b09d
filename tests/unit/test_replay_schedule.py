"""When the requests of a replay are due: at their recorded times, scaled, in whatever order."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.replay.options import Options, Window
from app.domain.replay.schedule import Arrival, most_in_flight, schedule

BEGAN = 1_764_500_000.0

arrivals = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 10_000)), st.one_of(st.none(), st.sampled_from("abc"))
    ),
    max_size=30,
).map(
    lambda told: [
        Arrival(index, None if at is None else BEGAN + at / 8, None, group)
        for index, (at, group) in enumerate(told)
    ]
)


def due(options: Options, *at: float | None, groups: str = "") -> list[tuple[int, float]]:
    """Index and due time of each request that arrived *at*; a letter in *groups* is its session."""
    told = [
        Arrival(
            index,
            None if moment is None else BEGAN + moment,
            group=groups[index] if groups[index : index + 1].strip() else None,
        )
        for index, moment in enumerate(at)
    ]
    return [(slot.index, slot.due_seconds) for slot in schedule(told, options).slots]


@given(arrivals, st.sampled_from([0.5, 1.0, 2.0, 4.0]))
def test_every_due_time_is_the_recorded_one_divided_by_the_speed(
    told: list[Arrival], speed: float
) -> None:
    made = schedule(told, Options(speed=speed))
    known = sorted(one.started_at for one in told if one.started_at is not None)

    assert [slot.due_seconds for slot in made.slots[: len(known)]] == pytest.approx(
        [(moment - known[0]) / speed for moment in known]
    )
    assert made.span_seconds == pytest.approx((known[-1] - known[0]) / speed if known else 0.0)


@given(arrivals, st.integers(0, 99), st.sampled_from([1.0, 0.5]), st.sampled_from([None, 1.0]))
def test_the_order_of_the_file_changes_nothing(
    told: list[Arrival], seed: int, sample: float, cut: float | None
) -> None:
    options = Options(sample=sample, cut_gaps_to_seconds=cut, window=Window(10.0, 900.0))
    shuffled = list(told)
    Random(seed).shuffle(shuffled)

    assert schedule(shuffled, options) == schedule(told, options)


@given(arrivals)
def test_they_are_due_in_the_order_of_arrival_and_none_is_lost(told: list[Arrival]) -> None:
    slots = schedule(told, Options()).slots

    assert all(before.due_seconds <= after.due_seconds for before, after in pairwise(slots))
    assert {slot.index for slot in slots} == {one.index for one in told}


@given(arrivals, st.floats(0, 1), st.integers(0, 9))
def test_a_sample_takes_whole_sessions(told: list[Arrival], share: float, seed: int) -> None:
    chosen = {slot.index for slot in schedule(told, Options(sample=share, seed=seed)).slots}

    for name in "abc":
        members = {one.index for one in told if one.group == name}
        assert members <= chosen or not members & chosen


def test_a_sample_is_about_as_large_as_was_asked() -> None:
    told = [Arrival(index, BEGAN + index) for index in range(2000)]

    assert 900 < len(schedule(told, Options(sample=0.5)).slots) < 1100


def test_a_window_is_half_open_and_keeps_a_session_that_began_in_it() -> None:
    options = Options(window=Window(1.0, 3.0))

    assert due(options, 0, 1, 2, 3, 4, groups="  s s") == [(1, 0.0), (2, 1.0), (4, 3.0)]
    assert due(options, 0, 1, 2, 3, 4, groups="s   s") == [(1, 0.0), (2, 1.0)]


@pytest.mark.parametrize(
    ("cut", "last"), [(None, 1000.0), (60.0, 60.0), (0.0, 0.0)], ids=["waited", "cut", "left out"]
)
def test_a_long_silence_is_cut_only_when_asked(cut: float | None, last: float) -> None:
    options = Options(cut_gaps_to_seconds=cut)
    made = schedule([Arrival(0, BEGAN), Arrival(1, BEGAN + 1000)], options)

    assert made.span_seconds == last
    assert made.gaps_seconds == (1000.0,)


def test_a_silence_of_a_minute_is_part_of_the_load() -> None:
    assert due(Options(cut_gaps_to_seconds=1.0), 0, 60) == [(0, 0.0), (1, 60.0)]


@pytest.mark.parametrize("mode", ["closed", "flat-out"])
def test_without_an_open_loop_each_is_due_as_soon_as_there_is_room(mode: str) -> None:
    options = replace(Options(), mode=mode)  # type: ignore[arg-type]

    assert due(options, 5, 0, 9) == [(1, 0.0), (0, 0.0), (2, 0.0)]


def test_requests_without_a_time_come_with_the_last() -> None:
    made = schedule([Arrival(0, None), Arrival(1, BEGAN), Arrival(2, BEGAN + 7)], Options())

    assert [(slot.index, slot.due_seconds) for slot in made.slots] == [(1, 0.0), (2, 7.0), (0, 7.0)]
    assert made.without_time == 1


def test_how_many_were_in_flight_at_once() -> None:
    assert most_in_flight([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)]) == 2
    assert most_in_flight([]) == 0
