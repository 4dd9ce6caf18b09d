"""NCCL's counts beside stacks: when they sharpen a comparison, and when they must not."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.claims import Level, Status
from app.domain.stack_findings import stack_findings
from app.domain.stacks.counts import Counted, who_is_behind
from app.domain.stacks.told import told
from tests import stacks
from tests.stacks import compared, files, ranks

ALL = [f"TP{n}" for n in range(8)]
WAIT = ranks(8, stacks.AWAITS_GPU)
BEHIND = dict.fromkeys(ALL, 48_211) | {"TP5": 48_210}


def test_counts_that_stood_still_name_the_rank_and_prove_it_stuck_from_one_sample() -> None:
    by = Counted(BEHIND, grew=False, communicator="cf26", sources=("7", "8"), seconds=10.0)
    comparison = compared(files(WAIT), counts=[by])
    assert (comparison.outliers, comparison.stuck, comparison.ground) == (("TP5",), True, "counts")
    assert "for others in communicator cf26" in comparison.says
    assert "No count of NCCL changed between two answers: stuck." in comparison.says
    [claim] = stack_findings(told(comparison), {"TP5": 3}, None).claims
    assert (claim.status, claim.level) == (Status.ESTABLISHED, Level.BAD)
    cited = [one.artifact for one in claim.evidence]
    assert cited == ["artifact 7", "artifact 8", "artifact 3"]


def test_counts_of_one_answer_name_the_rank_and_leave_open_whether_it_is_stuck() -> None:
    comparison = compared(files(WAIT), counts=[Counted(BEHIND)])
    assert (comparison.outliers, comparison.stuck) == (("TP5",), None)


def test_counts_that_grew_accuse_nobody_and_show_that_it_is_not_stuck() -> None:
    comparison = compared(files(WAIT, WAIT), counts=[Counted(BEHIND, grew=True)])
    assert (comparison.outliers, comparison.stuck) == ((), False)
    assert "grew meanwhile: not stuck" in comparison.says


def test_growth_of_other_ranks_shows_nothing_of_these() -> None:
    other = Counted({"TP0": 5, "TP1": 5}, grew=True)
    assert compared(files(WAIT, WAIT), counts=[other]).stuck is compared(files(WAIT, WAIT)).stuck


def test_a_stopped_rank_stays_stopped_whatever_was_counted() -> None:
    grew = Counted(dict.fromkeys(ALL, 5), grew=True)
    comparison = compared(files(WAIT, WAIT), counts=[grew], states={"TP2": "T"})
    assert (comparison.outliers, comparison.stuck) == (("TP2",), True)


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ([Counted({"TP0": 5, "TP1": 4}), Counted({"TP2": 900, "TP3": 900})], {"TP1"}),
        ([Counted({"TP0": 5, "TP1": 4}), Counted({"TP0": 5, "TP2": 4})], None),
        (
            [Counted({"TP0": 5, "TP1": 4, "TP2": 4, "TP3": 5}), Counted({"TP0": 5, "TP1": 4})],
            {"TP1"},
        ),
        ([Counted({"TP0": 5, "TP1": 4}), Counted({"TP0": 5, "TP2": 4}, grew=False)], {"TP2"}),
        ([Counted({"TP0": 5, "TP1": 4, "TP2": 4})], None),
        ([Counted({"TP0": 5})], None),
    ],
    ids=["two groups", "contradict", "agree in part", "stood still first", "one ahead", "alone"],
)
def test_counts_are_compared_within_a_communicator_only(
    counted: list[Counted], expected: set[str] | None
) -> None:
    found = who_is_behind(counted, ALL)
    assert (set(found.ranks) if found else None) == expected


@given(st.randoms(use_true_random=False), st.sampled_from([None, False]))
@settings(deadline=None, max_examples=30)
def test_which_rank_is_behind_changes_its_name_only(
    chance: random.Random, grew: bool | None
) -> None:
    shuffled = chance.sample(ALL, len(ALL))
    renamed = dict(zip(ALL, shuffled, strict=True))
    one = compared(files(WAIT), counts=[Counted(BEHIND, grew)])
    other = compared(
        files({renamed[rank]: calls for rank, calls in WAIT.items()}),
        counts=[Counted({renamed[rank]: n for rank, n in BEHIND.items()}, grew)],
    )
    assert (one.verdict, one.stuck) == (other.verdict, other.stuck)
    assert {renamed[rank] for rank in one.outliers} == set(other.outliers)
