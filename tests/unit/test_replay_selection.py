"""Which requests an expression names, and what it says of one that makes no sense."""

import pytest

from app.domain.dumps.recorded import State
from app.domain.replay.selection import EVERYTHING, read_selection
from app.errors import Malformed

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


def test_none_is_all_of_them() -> None:
    assert read_selection("") == EVERYTHING
    assert all(EVERYTHING.takes(index, None, None, ()) for index in (0, 1, 10**9, 2**62))


def test_as_many_are_named_as_a_shell_can_carry() -> None:
    selection = read_selection(",".join(str(index) for index in range(0, 50_000, 2)))

    assert [n for n in range(49_990, 50_010) if selection.takes(n, None, None, ())] == [
        49_990, 49_992, 49_994, 49_996, 49_998,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (" , ,", "The selection names no request."),
        ("0:3,nonsense", "“nonsense” names no request."),
        ("9" * 300_000, "The choice is longer than 200000 characters."),
    ],
    ids=lambda value: value[:12],
)
def test_what_names_none_is_refused(expression: str, says: str) -> None:
    with pytest.raises(Malformed) as refused:
        read_selection(expression)

    assert refused.value.what == says
