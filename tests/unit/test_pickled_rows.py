"""Lists of floats and of log probabilities stay in the file, and are what unpickling gives."""

import pickle
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.pickled import Limits, read_pickle
from app.domain.pickled.rows import Rows
from tests.pickles import same

RANDOM = random.Random(7)


def logprobs(count: int) -> list[tuple[float, int, None]]:
    """As SGLang has them, with token ids of one, two and four bytes, and negative ones."""
    ids = (3, 40_000, 150_000, -7)
    return [(-RANDOM.random(), RANDOM.choice(ids), None) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 64, 999, 1000, 1001, 1002, 2001, 30_000])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["numbers", "logprobs"])
def test_rows_are_what_unpickling_gives(kind: str, count: int, protocol: int) -> None:
    rows = logprobs(count)
    value = [row[0] for row in rows] if kind == "numbers" else rows
    read = read_pickle(pickle.dumps({"a": value, "b": [value, "after"], "c": (1, 2)}, protocol))

    assert read.problem is None
    assert same({"a": value, "b": [value, "after"], "c": (1, 2)}, read.value)
    assert isinstance(read.value, dict)
    assert len(read.value["a"]) == count
    if protocol > 3 and count in (5, 999, 1000, 1002, 30_000):
        assert isinstance(read.value["a"], Rows)


@pytest.mark.parametrize("protocol", [4, 5])
def test_a_tuple_that_comes_again_is_the_same_tuple(protocol: int) -> None:
    rows = logprobs(50)
    value = [rows, rows[7], rows[49], [rows[0]], "after", "after"]

    assert same(value, read_pickle(pickle.dumps(value, protocol)).value)


@given(
    st.lists(
        st.lists(st.tuples(st.floats(), st.integers(-(2**31), 2**31 - 1), st.none()), max_size=9)
        | st.lists(st.floats(), max_size=9)
        | st.lists(st.floats() | st.none() | st.integers(0, 300), max_size=9)
    ),
    st.sampled_from([4, 5]),
)
def test_rows_among_other_lists_are_read(value: list[object], protocol: int) -> None:
    assert same(value, read_pickle(pickle.dumps(value, protocol)).value)


def test_what_is_appended_later_comes_behind() -> None:
    rows = pickle.dumps([1.5] * 5)[:-1] + b"K\x07a."

    assert [*read_pickle(rows).value] == [1.5] * 5 + [7]  # type: ignore[misc]


def test_rows_that_are_cut_off_are_no_rows() -> None:
    whole = pickle.dumps(logprobs(50))
    for end in range(len(whole)):
        problem = read_pickle(whole[:end]).problem
        assert problem is not None
        assert problem.kind in ("truncated", "empty")


def test_asking_for_remembered_rows_again_and_again_takes_no_time() -> None:
    rows = pickle.dumps(logprobs(60_000), 5)[:-1]
    asked = b"".join(b"0j" + number.to_bytes(4, "little") for number in range(1, 50_000))
    began = time.process_time()
    read = read_pickle(rows + asked + b".")

    assert read.problem is None
    assert time.process_time() - began < 10
    limited = read_pickle(rows + asked + b".", Limits(made_bytes=0, made_per_byte=4))
    assert limited.problem is not None
    assert limited.problem.kind == "limit"
