"""The icicle of compared ranks: widths are ranks, nothing overlaps, unknown is hatched."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.stacks.icicle import Bar, icicle
from app.web.icicles import icicle_of
from app.web.side_by_side import ranks_told
from app.web.views.comparison import comparison_in
from app.web.views.icicle import Icicle, IcicleBar
from app.web.views.ranks import USUAL, RanksTold, Shape
from tests import stacks
from tests.compared import comparison_of

HUNG = stacks.ranks(8, stacks.AWAITS_GPU, TP5=stacks.AWAITS_REQUESTS)
WORDS = st.sampled_from(["run", "step", "wait", "evict", "poll"])
STACKS = st.lists(WORDS, min_size=1, max_size=9).map(
    lambda names: tuple(f"{name} (model.py:{number})" for number, name in enumerate(names))
)


@dataclass(frozen=True)
class Counted:
    count: int
    calls: Sequence["Counted"] = ()


@st.composite
def trees(draw: st.DrawFn, most: int = 12, depth: int = 4) -> Counted:
    """A call with at most *most* ranks; some of them may end in it."""
    count = draw(st.integers(1, most))
    left, calls = count, []
    while depth and left and draw(st.booleans()):
        calls.append(draw(trees(most=left, depth=depth - 1)))
        left -= calls[-1].count
    return Counted(count, tuple(calls))


@given(st.lists(trees(), max_size=4))
def test_calls_lie_under_the_one_that_makes_them_and_never_overlap(calls: list[Counted]) -> None:
    bars = list(icicle(calls))

    for bar in bars:
        below = [one for one in bars if any(one.call is call for call in bar.call.calls)]
        inside = [one for one in below if _lies_under(one, bar)]
        assert len(inside) >= len(bar.call.calls)
    assert sum(bar.width for bar in bars if bar.depth == 0) == sum(call.count for call in calls)
    for depth in {bar.depth for bar in bars}:
        row = sorted((bar for bar in bars if bar.depth == depth), key=lambda bar: bar.start)
        assert all(one.start + one.width <= two.start for one, two in pairwise(row))


def _lies_under(one: Bar[Counted], above: Bar[Counted]) -> bool:
    start, end = one.start, one.start + one.width
    return (
        one.depth == above.depth + 1 and above.start <= start and end <= above.start + above.width
    )


@given(st.lists(STACKS, min_size=2, max_size=12))
def test_widths_of_a_row_never_exceed_the_whole(calls: list[Sequence[str]]) -> None:
    told = drawn(comparison_of({f"TP{n}": one for n, one in enumerate(calls)}))
    for top in {bar.top for bar in told.bars} if told else ():
        row = [bar for bar in told.bars if bar.top == top] if told else []
        assert sum(map(width, row)) <= 100.01


def width(bar: IcicleBar) -> float:
    return float(bar.width.removesuffix("%"))


def ranks(document: dict[str, Any], shape: Shape = USUAL) -> RanksTold:
    comparison = comparison_in({"comparison": document})
    assert comparison is not None
    return ranks_told(comparison, (), lambda _: None, shape)


def drawn(document: dict[str, Any], shape: Shape = USUAL) -> Icicle | None:
    return ranks(document, shape).icicle


def shown(document: dict[str, Any], shape: Shape = USUAL) -> Icicle:
    told = drawn(document, shape)
    assert told is not None
    return told


def test_the_outlier_lies_at_the_left_below_the_call_where_ranks_part() -> None:
    told = shown(comparison_of(HUNG, HUNG))
    first, second = told.bars[0], told.bars[1]
    outlier = next(bar for bar in told.bars if bar.style == "outlier")

    assert first.ranks == "TP0-7"
    assert (second.name, second.style, second.ranks) == ("event_loop_overlap", "fork", "")
    assert second.title.endswith("they part after it")
    assert (outlier.name, outlier.ranks, outlier.left) == ("recv_requests", "TP5", "0%")
    assert outlier.width == "12.5%"
    assert outlier.top == second.top + second.height
    assert told.says == (
        "8 ranks part after event_loop_overlap: "
        "TP5 in recv_requests; TP0-4, TP6, TP7 in process_batch_result."
    )


def test_ranks_that_were_not_read_are_hatched_over_the_whole_height() -> None:
    missing = [{"rank": "TP9", "reason": "busy"}, {"rank": "TP8", "reason": "gone"}]
    told = shown({**comparison_of(HUNG, HUNG), "missing": missing, "ranks": 10})
    [void] = [bar for bar in told.bars if bar.style == "void"]

    assert (void.left, void.width, void.top, void.height) == ("80%", "20%", 0, told.height)
    assert (void.name, void.ranks) == ("not read", "TP8, TP9")
    assert told.bars[0].width == "80%"


def test_ranks_that_end_where_others_go_on_leave_their_width_empty() -> None:
    deeper = stacks.ranks(2, stacks.EVICTS, TP1=stacks.EVICTS[1:])
    told = shown(comparison_of(deeper))

    assert "TP1 no further; TP0 in _delete_leaf" in told.says
    assert [bar.width for bar in told.bars][-1] == "50%"


def test_classes_beyond_the_last_letter_are_marked_as_not_drawn() -> None:
    many = {f"TP{n}": [f"call_{n} (model.py:1)"] for n in range(30)}
    told = shown(comparison_of(many))
    [left_out] = [bar for bar in told.bars if bar.style == "left-out"]

    assert left_out.ranks == "4 ranks"
    assert round(width(left_out)) == round(400 / 30)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(comparison_of(stacks.ranks(8, stacks.SYNCS_MLP)), id="all do the same"),
        pytest.param(comparison_of(stacks.ranks(1, stacks.EVICTS)), id="one rank"),
    ],
)
def test_where_nothing_parts_there_is_no_icicle(document: dict[str, Any]) -> None:
    assert drawn(document) is None


def test_none_of_no_groups() -> None:
    comparison = comparison_in({"comparison": {**comparison_of(HUNG), "groups": []}})
    assert comparison is not None
    assert icicle_of(comparison, ()) is None


def test_a_bar_without_room_for_a_word_has_its_title_alone() -> None:
    told = shown(comparison_of(stacks.ranks(64, stacks.REDUCES, TP9=stacks.EVICTS)))
    narrow = [bar for bar in told.bars if bar.style == "outlier"]

    assert {(bar.name, bar.ranks) for bar in narrow} == {("", "")}
    assert (
        narrow[0].title
        == "get_new_batch_prefill, sglang/srt/managers/scheduler.py:2710 · TP9, 1 rank"
    )


def test_what_does_not_fit_is_counted_and_rows_are_cut_from_below() -> None:
    many = {f"TP{n}": [f"{letter}_{n} (model.py:1)" for letter in "abcdef"] for n in range(26)}
    told = shown(comparison_of(many), Shape(folded=False))

    assert told.left_out > 0
    assert len([bar for bar in told.bars if re.fullmatch(r"f_\d+", bar.name)]) == 26


LINES = {
    "TP0": ("wait (a.py:1)", "loop (a.py:10)"),
    "TP1": ("step (a.py:2)", "loop (a.py:20)"),
}


def test_by_line_calls_of_one_function_part_and_say_their_lines() -> None:
    by_call, by_line = comparison_of(LINES), Shape(by_line=True)

    assert "part after loop: TP0 in wait; TP1 in step" in shown(by_call).says
    assert "TP0 in loop:10; TP1 in loop:20" in shown(by_call, by_line).says
    [fork] = [call for call in _all(ranks(by_call, by_line).tree.calls) if call.fork]
    assert [call.place for call in fork.calls] == ["a.py:10", "a.py:20"]


def test_unfolded_every_call_is_a_line_unless_only_the_folded_run_has_room() -> None:
    deep = tuple(f"call_{number} (model.py:{number})" for number in range(20))
    document = comparison_of(stacks.ranks(2, deep, TP1=deep[1:]))
    deepest = tuple(f"{'call' * 25}_{n} (model.py:{n})" for n in range(50))
    large = comparison_of({f"TP{n}": (f"end_{n} (a.py:1)", *deepest) for n in range(16)})

    assert not any(call.folded for call in _all(ranks(document, Shape(folded=False)).tree.calls))
    assert any(call.folded for call in _all(ranks(document).tree.calls))
    assert any(call.folded for call in _all(ranks(large, Shape(folded=False)).tree.calls))


def _all(calls: Sequence[Any]) -> list[Any]:
    return [one for call in calls for one in (call, *_all(call.calls))]
