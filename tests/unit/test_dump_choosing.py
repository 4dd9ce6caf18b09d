"""Requests are chosen by an expression, which is told as short as it means."""

import pytest

from app.domain.dumps.choosing import LONGEST, Choice, read_choice
from app.errors import Malformed


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param(" , ,", "", id="commas"),
        pytest.param("7", "7", id="index"),
        pytest.param("0:3,7", "0:3,7", id="range-and-index"),
        pytest.param("7, 2,0:3,3", "0:4,7", id="what-touches-is-one"),
        pytest.param("5,5,5", "5", id="twice"),
        pytest.param(":3", "0:3", id="from-the-start"),
        pytest.param("3:", "3:", id="to-the-end"),
        pytest.param("rid=a-1,rid=b=2,rid=a-1", "rid=a-1,rid=b=2", id="identifiers"),
        pytest.param("suspect,state=unfinished,1", "1,state=unfinished,suspect", id="words"),
    ],
)
def test_an_expression_is_told_as_what_it_means(text: str, told: str) -> None:
    choice = read_choice(text)
    assert str(choice) == told
    assert read_choice(told) == choice
    assert bool(choice) == bool(told)


def test_a_range_ends_before_its_end() -> None:
    assert read_choice("0:3") == Choice(spans=((0, 3),))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("3:3", "The range 3:3 is empty.", id="empty-range"),
        pytest.param("5:2", "The range 5:2 is empty.", id="backwards"),
        pytest.param(":", "“:” names no request.", id="colon-alone"),
        pytest.param("-1", "“-1” names no request.", id="negative"),
        pytest.param("state=gone", "“state=gone” names no request.", id="no-such-state"),
        pytest.param("unfinished", "“unfinished” names no request.", id="state-alone"),
        pytest.param("rid=", "“rid=” names no request.", id="no-identifier"),
        pytest.param("suspects", "“suspects” names no request.", id="not-the-word"),
        pytest.param("1;2", "“1;2” names no request.", id="semicolon"),
        pytest.param("9" * 19, f"“{'9' * 19}” names no request.", id="too-large"),
        pytest.param("1," * LONGEST, f"The choice is longer than {LONGEST} characters.", id="long"),
    ],
)
def test_what_names_no_request_is_refused_with_the_term(text: str, says: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_choice(text)
    assert caught.value.what == says
    assert caught.value.fix
