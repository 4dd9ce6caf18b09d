"""Which rank differs, and what must not be taken for it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from app.domain.stacks.compare import compare, tree_of
from app.domain.stacks.counts import Counted
from app.domain.stacks.reading import read_files
from app.domain.stacks.samples import Missing, Sample
from app.domain.stacks.sources import StackFile
from app.domain.stacks.told import told
from app.domain.titles import read_rank
from tests import captured, stacks
from tests.stacks import compared, dump_json, files, ranks

SEVEN_WAIT = ranks(8, stacks.CHECKS_CACHE, TP3=stacks.EVICTS)
GPU_WAIT = ranks(8, stacks.AWAITS_GPU, TP6=stacks.AWAITS_REQUESTS)
IDLE = ranks(8, stacks.AWAITS_REQUESTS, TP0=stacks.POLLS, TP5=stacks.SLEEPS_IDLE)
LOGITS = {"TP0": stacks.AWAITS_REQUESTS, "TP1": stacks.GATHERS_LOGITS}


def labels(many: int) -> list[str]:
    return [f"TP{number}" for number in range(many)]


@pytest.mark.parametrize(
    ("name", "verdict", "outliers", "majority", "read"),
    [
        pytest.param("01", "rank divergence", ["TP3"], 7, (8, 8), id="seven-in-all-reduce"),
        pytest.param("03", "rank divergence", ["TP6"], 7, (8, 8), id="behind-an-event-wait"),
        pytest.param("04", "symmetric", [], 16, (16, 16), id="symmetric-wedge"),
        pytest.param("06", "not enough evidence", [], 1, (1, 8), id="partial-capture"),
        pytest.param("07", "not enough evidence", [], 1, (1, 2), id="odd-shapes"),
        pytest.param("08", "not enough evidence", [], 0, (0, 0), id="errors-only"),
        pytest.param("34", "not enough evidence", [], 0, (0, 8), id="nothing-captured"),
    ],
)
def test_a_named_case_is_told_as_it_was(
    name: str, verdict: str, outliers: list[str], majority: int, read: tuple[int, int]
) -> None:
    comparison = compared(stacks.case(name))
    assert comparison.verdict == verdict
    assert list(comparison.outliers) == outliers
    assert comparison.majority_count == majority
    assert (comparison.captured, comparison.ranks) == read
    assert comparison.stuck is None


def test_one_sample_says_where_they_part_and_that_slow_looks_like_stuck() -> None:
    comparison = compared(stacks.case("01"))
    assert comparison.divergence is not None
    assert comparison.divergence.frame is not None
    assert comparison.divergence.frame.function == "get_new_batch_prefill"
    assert [ranks for _, ranks in comparison.divergence.branches][1] == ("TP3",)
    assert "7 of 8" in comparison.says
    assert "cannot tell slow from stuck" in comparison.says
    assert comparison.groups[0].place.top is not None
    assert comparison.groups[0].place.top.function == "all_reduce"
    assert set(comparison.moved.values()) == {None}


@pytest.mark.parametrize(
    ("scene", "verdict", "outliers"),
    [
        ("idle_tp1", "idle", []),
        ("idle_tp2", "idle", []),
        ("busy_rust", "idle", []),
        ("busy_tp1", "no divergence", []),
        ("busy_tp2", "different collectives", []),
        ("hang_tp2_tp1_stopped", "rank divergence", ["TP1"]),
        ("sigstop_tp1", "symmetric", []),
        ("startup_dp2_importing", "no divergence", []),
    ],
    ids=str,
)
def test_a_real_server_is_told_as_it_was(scene: str, verdict: str, outliers: list[str]) -> None:
    folder = captured.needs(captured.SHARED / "captures" / "pyspy" / scene)
    comparison = compared(stacks.files_in(folder))
    assert (comparison.verdict, list(comparison.outliers)) == (verdict, outliers)
    assert comparison.stuck is not True
    assert comparison.samples == 1


# Two samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "verdict", "outliers", "stuck"),
    [
        pytest.param(SEVEN_WAIT, SEVEN_WAIT, "rank divergence", ["TP3"], True, id="stands-still"),
        pytest.param(
            SEVEN_WAIT,
            {**SEVEN_WAIT, "TP3": stacks.EVICTS_ON},
            "rank divergence",
            ["TP3"],
            False,
            id="slow",
        ),
        pytest.param(GPU_WAIT, GPU_WAIT, "rank divergence", ["TP6"], True, id="hidden-collective"),
        pytest.param(
            ranks(16, stacks.CHECKS_CACHE),
            ranks(16, stacks.CHECKS_CACHE),
            "symmetric",
            [],
            True,
            id="symmetric",
        ),
        pytest.param(LOGITS, LOGITS, "different collectives", [], True, id="two-collectives"),
        pytest.param(IDLE, IDLE, "idle", [], None, id="idle-twice-alike"),
        pytest.param(
            IDLE,
            {**IDLE, "TP0": stacks.AWAITS_REQUESTS},
            "idle",
            [],
            False,
            id="idle-loop-turns",
        ),
        pytest.param(
            ranks(8, stacks.AWAITS_GPU),
            ranks(8, stacks.AWAITS_GPU),
            "symmetric",
            [],
            None,
            id="busy-caught-twice-at-the-gpu",
        ),
        pytest.param(
            ranks(8, stacks.REDUCES),
            ranks(8, stacks.REDUCES),
            "symmetric",
            [],
            None,
            id="busy-caught-twice-in-the-batch",
        ),
        pytest.param(
            ranks(8, stacks.COMPUTES),
            ranks(8, stacks.COMPUTES),
            "no divergence",
            [],
            None,
            id="busy-caught-twice-computing",
        ),
        pytest.param(
            ranks(2, stacks.REDUCES, TP1=stacks.COMPUTES),
            ranks(2, stacks.REDUCES, TP1=stacks.COMPUTES),
            "rank divergence",
            ["TP1"],
            None,
            id="busy-pair-caught-twice",
        ),
        pytest.param(
            ranks(8, stacks.REDUCES, TP3=stacks.COMPUTES),
            ranks(8, stacks.GATHERS_LOGITS, TP3=stacks.REDUCES),
            "no divergence",
            [],
            False,
            id="all-go-on",
        ),
        pytest.param(
            ranks(8, stacks.CHECKS_CACHE, TP5=stacks.COLLECTS_GARBAGE),
            ranks(8, stacks.CHECKS_CACHE, TP5=stacks.COLLECTS_GARBAGE),
            "rank divergence",
            ["TP5"],
            None,
            id="garbage-collection",
        ),
    ],
)
def test_two_samples_tell_what_one_cannot(
    first: dict[str, Sequence[str]],
    second: dict[str, Sequence[str]],
    verdict: str,
    outliers: list[str],
    stuck: bool | None,
) -> None:
    comparison = compared(files(first, second))
    assert (comparison.verdict, list(comparison.outliers)) == (verdict, outliers)
    assert comparison.stuck is stuck
    assert comparison.samples == 2


def test_a_rank_that_moves_is_called_slow() -> None:
    comparison = compared(files(SEVEN_WAIT, {**SEVEN_WAIT, "TP3": stacks.EVICTS_ON}))
    assert comparison.moved["TP3"] is True
    assert comparison.moved["TP0"] is False
    assert "TP3 moved" in comparison.says
    assert "slow, not stuck" in comparison.says


def test_samples_that_came_too_soon_prove_nothing() -> None:
    reading = read_files(files(SEVEN_WAIT, SEVEN_WAIT))
    soon = [
        _at(sample, stacks.MOMENT + timedelta(seconds=2 * sample.number))
        for sample in reading.samples
    ]
    later = [
        _at(sample, stacks.MOMENT + timedelta(seconds=5 * sample.number))
        for sample in reading.samples
    ]
    assert compare(soon, []).stuck is None
    assert compare(later, []).stuck is True


def _at(sample: Sample, moment: datetime) -> Sample:
    return replace(sample, taken_at=moment)


# Traps -------------------------------------------------------------------------------------------


def test_the_same_operation_asked_for_elsewhere_is_another_collective() -> None:
    comparison = compared(files(ranks(4, stacks.CHECKS_CACHE, TP1=stacks.CHECKS_LOADS)))
    assert comparison.verdict == "different collectives"
    assert comparison.outliers == ("TP1",)


def test_two_halves_in_two_collectives_accuse_nobody() -> None:
    half = {f"TP{number}": stacks.SYNCS_MLP for number in range(4, 8)}
    comparison = compared(files(ranks(8, stacks.CHECKS_CACHE, **half)))
    assert comparison.verdict == "different collectives"
    assert comparison.outliers == ()


def test_of_two_ranks_the_one_outside_the_awaited_collective_is_named() -> None:
    comparison = compared(files({"TP0": stacks.EVICTS, "TP1": stacks.CHECKS_CACHE}))
    assert comparison.outliers == ("TP0",)


def test_of_two_ranks_that_both_wait_neither_is_named() -> None:
    comparison = compared(files({"TP0": stacks.AWAITS_GPU, "TP1": stacks.AWAITS_REQUESTS}))
    assert comparison.verdict == "rank divergence"
    assert comparison.outliers == ()


def test_a_missing_rank_may_be_the_one_that_equal_ranks_wait_for() -> None:
    waiting = ranks(8, stacks.SYNCS_MLP)
    del waiting["TP5"]
    comparison = compared(files(waiting, waiting))
    assert comparison.verdict == "not enough evidence"
    assert [one.rank for one in comparison.missing] == ["TP5"]
    assert comparison.outliers == ()


def test_a_missing_rank_does_not_hide_one_that_is_seen_apart() -> None:
    seen = ranks(8, stacks.CHECKS_CACHE, TP3=stacks.EVICTS)
    del seen["TP6"]
    comparison = compared(files(seen))
    assert comparison.outliers == ("TP3",)
    assert "TP6" in comparison.says


def test_pipeline_stages_do_different_things_by_design() -> None:
    first = {f"PP0_TP{number}": stacks.CHECKS_CACHE for number in range(4)}
    second = {f"PP1_TP{number}": stacks.RECEIVES_STAGE for number in range(4)}
    apart = {**first, "PP0_TP2": stacks.EVICTS, **second}
    comparison = compared(files(apart))
    assert comparison.verdict == "rank divergence"
    assert comparison.outliers == ("PP0_TP2",)
    assert comparison.peers == "PP0"


def test_replicas_are_servers_of_their_own() -> None:
    busy, idle = {"DP0": stacks.COMPUTES}, {"DP1": stacks.SLEEPS_IDLE}
    assert compared(files({**busy, **idle})).verdict == "no divergence"


def test_a_stack_read_in_motion_accuses_nobody_until_another_one_confirms_it() -> None:
    text = files(ranks(8, stacks.CHECKS_CACHE, TP3=stacks.CHECKS_CACHE))
    others = [file for file in text if "tp3" not in file.path]
    torn = StackFile("x/sglang_scheduler_TP3.777.nonblocking.json", dump_json(777, stacks.EVICTS))
    again = StackFile("y/sglang_scheduler_TP3.777.nonblocking.json", dump_json(777, stacks.EVICTS))
    assert compared([*others, torn]).verdict == "not enough evidence"
    assert compared([*others, torn]).outliers == ()
    assert compared([*others, torn, again]).outliers == ("TP3",)


# Stronger evidence -------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["T", "t", "Z"])
def test_a_rank_that_the_kernel_holds_still_is_named_with_or_without_stacks(state: str) -> None:
    reading = read_files(files(LOGITS))
    comparison = compared(reading, states={"TP1": state})
    assert (comparison.verdict, comparison.outliers) == ("rank divergence", ("TP1",))
    assert f"state {state}" in comparison.says or "zombie" in comparison.says
    lost = [Missing("TP1", "permission", "Not allowed.", numbers=read_rank("TP1"))]
    read = [sample for sample in reading.samples if sample.rank != "TP1"]
    assert compare(read, lost, states={"TP1": state}).outliers == ("TP1",)


def test_a_replica_that_is_stopped_is_named_though_nobody_waits_for_it() -> None:
    read = files({"DP0": stacks.COMPUTES, "DP1": stacks.SLEEPS_IDLE})
    comparison = compared(read, states={"DP1": "T", "DP0": "R"})
    assert (comparison.verdict, comparison.outliers) == ("rank divergence", ("DP1",))


def test_ranks_that_are_all_stopped_are_equal_and_nobody_is_named() -> None:
    states = dict.fromkeys(labels(8), "T")
    comparison = compared(files(SEVEN_WAIT), states=states)
    assert (comparison.verdict, comparison.outliers) == ("symmetric", ())
    assert "All 8 ranks are held still" in comparison.says


def test_a_stopped_rank_is_told_from_one_sample_and_stuck_from_two() -> None:
    read = ranks(2, stacks.AWAITS_REQUESTS, TP1=stacks.POLLS)
    once = compared(files(read), states={"TP1": "T"})
    twice = compared(files(read, read), states={"TP1": "T"})
    assert (once.outliers, once.stuck, once.moved["TP1"]) == (("TP1",), None, None)
    assert (twice.outliers, twice.stuck, twice.moved["TP1"]) == (("TP1",), True, False)


def test_sleep_in_the_kernel_counts_once_a_second_look_confirms_it() -> None:
    once, twice = files(IDLE), files(IDLE, IDLE)
    assert compared(once, states={"TP4": "D"}).outliers == ()
    assert compared(twice, states={"TP4": "D"}).outliers == ("TP4",)


def test_the_lowest_count_of_collectives_is_stronger_than_being_rare() -> None:
    counts = dict.fromkeys(labels(8), 48_211) | {"TP1": 48_210}
    comparison = compared(files(GPU_WAIT), counts=[Counted(counts)])
    assert comparison.outliers == ("TP1",)
    assert "48,210" in comparison.says


def test_equal_counts_change_nothing() -> None:
    counts = dict.fromkeys(labels(8), 48_211)
    assert compared(files(GPU_WAIT), counts=[Counted(counts)]).outliers == ("TP6",)


# The document ------------------------------------------------------------------------------------


def test_the_document_has_what_the_interface_promises() -> None:
    reading = read_files(stacks.case("06"))
    document = told(compared(reading), reading)
    assert document["ranks"] == 8
    assert document["captured"] == 1
    assert document["partial"] == ["TP1"]
    assert [one["rank"] for one in document["missing"]] == labels(8)[1:]
    assert all(one["reason"] and one["fix"] for one in document["missing"])
    assert document["divergence"] is None
    [group] = document["groups"]
    assert group["ranks"] == ["TP0"]
    assert group["where"] == "torch/distributed/distributed_c10d.py:3081"
    assert group["primitive"] == "collective"
    assert group["frames"][0].startswith("all_reduce (")


def test_nothing_at_all_is_no_evidence() -> None:
    comparison = compare([], [])
    assert comparison.verdict == "not enough evidence"
    assert comparison.ranks == 0
    assert comparison.stuck is None


def test_what_was_read_must_be_most_of_all_ranks_to_say_who_is_apart() -> None:
    read = ranks(5, stacks.CHECKS_CACHE, TP3=stacks.EVICTS)
    lost = [Missing(f"TP{n}", "timeout", "Too slow.") for n in range(5, 8)]
    reading = read_files(files(read))
    comparison = compare(reading.samples, lost)
    assert (comparison.verdict, comparison.outliers) == ("not enough evidence", ())


def test_a_wait_that_py_spy_does_not_show_is_seen_by_all_standing_at_one_line() -> None:
    hidden = stacks.AWAITS_GPU[2:]
    comparison = compared(files(ranks(8, hidden, TP6=stacks.AWAITS_REQUESTS)))
    assert (comparison.verdict, comparison.outliers) == ("rank divergence", ("TP6",))


def test_the_idle_loop_of_attention_dp_is_a_collective_itself() -> None:
    together = ranks(16, stacks.SYNCS_MLP)
    comparison = compared(files(together, together))
    assert (comparison.verdict, comparison.stuck) == ("symmetric", None)


def test_the_tree_holds_every_rank_that_was_read() -> None:
    names, root = tree_of(compared(files(SEVEN_WAIT)))
    assert sorted(names) == labels(8)
    assert root.ranks == 2**8 - 1
    [module] = root.children.values()
    assert (module.key, module.ranks.bit_count(), module.ends) == ("<module> (<string>)", 8, 0)
