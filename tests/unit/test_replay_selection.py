"""Which requests an expression names, and what it says of one that makes no sense."""

import pytest

from app.domain.dumps.recorded import State
from app.domain.replay.selection import read_selection
from app.errors import Rejected

STATES: dict[int, State] = {4: "unfinished", 6: "aborted"}


@pytest.mark.parametrize(
    ("expression", "taken"),
    [
        ("0:3,7", [0, 1, 2, 7]),
        ("7", [7]),
        (" 1 , 2 ", [1, 2]),
        ("6:", [6, 7, 8, 9]),
        (":2", [0, 1]),
        ("rid=rid-3", [3]),
        ("state=unfinished", [4]),
        ("state=aborted,rid=rid-0", [0, 6]),
        ("suspect", [5]),
        ("suspect,0", [0, 5]),
        ("100", []),
    ],
)
def test_an_expression_names_requests(expression: str, taken: list[int]) -> None:
    selection = read_selection(expression)
    found = [
        index
        for index in range(10)
        if selection.takes(index, f"rid-{index}", STATES.get(index, "finished"), {5})
    ]

    assert found == taken


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "Part 1 of the selection makes no sense: empty."),
        ("1,,2", "Part 2 of the selection makes no sense: empty."),
        ("1;2", "Part 1 of the selection makes no sense: '1;2'."),
        ("-1", "Part 1 of the selection makes no sense: '-1'."),
        ("3:3", "The range 3:3 is empty: its end is not in it."),
        ("state=dead", "There is no state 'dead'."),
        ("rid=", "Part 1 of the selection makes no sense: 'rid='."),
        ("suspects", "Part 1 of the selection makes no sense: 'suspects'."),
        ("0," * 20_000, "The selection has more than 10000 parts."),
        ("9" * 300_000, "The selection has more than 200000 characters."),
    ],
    ids=lambda value: value[:12],
)
def test_what_makes_no_sense_is_said_exactly(expression: str, says: str) -> None:
    with pytest.raises(Rejected) as refused:
        read_selection(expression)

    assert refused.value.what == says
