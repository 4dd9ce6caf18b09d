"""The tree of calls of a comparison: folded where nothing parts, a cell for each rank."""

from collections.abc import Iterator, Sequence
from typing import Any

from app.domain.stacks.told import MOST_FRAMES
from app.web.formats import cut
from app.web.parting import MOST_CELLS
from app.web.side_by_side import ranks_told
from app.web.views.comparison import comparison_in
from app.web.views.ranks import Call, RanksTold
from tests import stacks
from tests.compared import comparison_of


def told(document: dict[str, Any]) -> RanksTold:
    comparison = comparison_in({"comparison": document})
    assert comparison is not None
    return ranks_told(comparison, (), lambda _: None)


def walk(calls: Sequence[Call]) -> Iterator[Call]:
    for call in calls:
        yield call
        yield from walk(call.calls)


def test_every_rank_is_in_exactly_one_branch_after_a_fork() -> None:
    ranks = stacks.ranks(8, stacks.AWAITS_GPU, TP5=stacks.AWAITS_REQUESTS, TP2=stacks.EVICTS)
    tree = told(comparison_of(ranks)).tree

    [fork] = [call for call in walk(tree.calls) if call.fork]
    assert fork.name == "event_loop_overlap"
    assert fork.count == 8 == sum(call.count for call in fork.calls)
    for place in range(8):
        assert sum(call.cells[place].style != "none" for call in fork.calls) == 1


def test_ranks_that_end_where_others_go_on_are_told() -> None:
    deeper = stacks.ranks(2, stacks.EVICTS, TP1=stacks.EVICTS[1:])
    calls = list(walk(told(comparison_of(deeper)).tree.calls))

    assert [call.ends for call in calls if call.ends] == ["TP1"]
    assert [call.name for call in calls if call.fork] == ["evict"]


def test_a_long_run_without_a_fork_is_folded_with_all_its_calls_inside() -> None:
    deep = tuple(f"call_{number} (model.py:{number})" for number in range(20))
    calls = list(walk(told(comparison_of(stacks.ranks(2, deep))).tree.calls))

    [folded] = [call for call in calls if call.folded]
    assert len(calls) == 4
    assert len(folded.folded) + 3 == 20 + 5  # wrapping is left out of the root's six
    assert not told(comparison_of(stacks.ranks(2, deep))).tree.parts


def test_stacks_that_were_cut_at_the_root_begin_where_all_still_are() -> None:
    deep = tuple(f"call_{number} (model.py:{number})" for number in range(MOST_FRAMES + 9))
    tree = told(comparison_of(stacks.ranks(4, deep[30:], TP3=deep))).tree
    whole = told(comparison_of(stacks.ranks(4, stacks.EVICTS, TP3=(*deep, *stacks.EVICTS)))).tree

    assert tree.calls[0].count == 4
    assert whole.calls[0].count == 4


def test_what_does_not_fit_on_the_page_is_counted() -> None:
    many = {
        f"TP{number}": [f"{letter}_{number} (model.py:1)" for letter in "abcdefgh"]
        for number in range(26)
    }
    shown = told(comparison_of(many))

    assert shown.tree.left_out > 0
    assert all(len(call.cells) <= MOST_CELLS for call in walk(shown.tree.calls))


def test_text_is_cut_by_what_it_takes_on_a_page() -> None:
    assert cut("evict", 5) == "evict"
    assert 0 < cut('"' * 50, 100).count('"') <= 20
    assert cut("é" * 10, 8).rstrip("…") == "é" * 4
