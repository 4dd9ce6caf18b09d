"""The named cases 04 and 06 over again: all ranks in one place, or only a part of them read."""

from collections.abc import Sequence

import pytest

from app.domain.stacks.reading import read_files
from app.domain.stacks.sources import StackFile
from tests import stacks
from tests.stack_scenes import (
    BARRIER,
    CHECKS,
    DENIED,
    DP_ATTENTION,
    EVICTS,
    EXPERTS,
    GONE,
    NO_TOOL,
    OLD_CHECKS,
    OLD_ROOT,
    START_ROOT,
    TAKES_WEIGHTS,
    VLLM_REDUCES,
    VLLM_ROOT,
    Scene,
    failed,
    jsons,
    must_say,
    nodes,
    one_text,
    scene,
    sizes,
    texts,
    tp,
)
from tests.stacks import compared, dump_json, dump_text

# 04: all in the same place -----------------------------------------------------------------------

SYMMETRIC = [
    pytest.param(nodes(scene(tp(16), stacks.SYNCS_MLP), 8), 16, None, id="two-hosts"),
    pytest.param(nodes(scene(tp(16), CHECKS), 4), 16, None, id="four-hosts"),
    pytest.param(texts(*[scene(tp(2), CHECKS)] * 2), 2, True, id="two-twice"),
    pytest.param(texts(*[scene(tp(4), CHECKS)] * 3), 4, True, id="four-three-times"),
    pytest.param(jsons(*[scene(tp(8), CHECKS)] * 2), 8, True, id="json-twice"),
    pytest.param(one_text(scene(tp(8), CHECKS)), 8, None, id="all-in-one-text"),
    pytest.param(texts(*[scene(DP_ATTENTION, stacks.SYNCS_MLP)] * 2), 8, None, id="attention-dp"),
    pytest.param(
        texts(*[scene(tp(8), BARRIER)] * 2, root=START_ROOT), 8, True, id="barrier-at-start"
    ),
    pytest.param(texts(scene(EXPERTS, CHECKS)), 8, None, id="experts"),
    pytest.param(texts(*[scene(tp(8), TAKES_WEIGHTS)] * 2), 8, True, id="new-weights"),
    pytest.param(texts(scene(tp(8), OLD_CHECKS), root=OLD_ROOT), 8, None, id="sglang-0.4"),
    pytest.param(
        texts(*[scene(tp(4), VLLM_REDUCES)] * 2, title="VLLM::Worker_{}", root=VLLM_ROOT),
        4,
        None,
        id="vllm-in-its-batch",
    ),
    pytest.param(
        texts(
            {
                rank: (calls[0].replace("3081", str(3081 + at)), *calls[1:])
                for at, (rank, calls) in enumerate(scene(tp(8), CHECKS).items())
            }
        ),
        8,
        None,
        id="at-other-lines-of-the-same-call",
    ),
    pytest.param(texts(*[scene(tp(16), stacks.REDUCES)] * 2), 16, None, id="in-the-batch"),
]


@pytest.mark.parametrize(("files", "many", "stuck"), SYMMETRIC)
def test_04_equal_ranks_are_told_as_equal_and_not_as_well(
    files: Sequence[StackFile], many: int, stuck: bool | None
) -> None:
    found = compared(files)
    must_say(found, "symmetric", [], stuck)
    assert (found.captured, found.ranks, found.majority_count) == (many, many, many)
    assert "no proof of health" in found.says
    assert any(str(many) in one for one in found.settles)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([*texts(scene(tp(7), CHECKS)), *failed("TP7", GONE)], id="one-is-gone"),
        pytest.param([*texts(scene(tp(7), CHECKS)), sizes(tp_size=8)], id="one-was-never-tried"),
        pytest.param(texts(scene([*tp(3), "TP4"], CHECKS)), id="a-gap-in-the-numbers"),
        pytest.param([*nodes(scene(tp(8), CHECKS), 8), sizes(tp_size=16)], id="one-host-of-two"),
    ],
)
def test_04_equal_ranks_are_no_symmetric_wedge_while_one_is_missing(
    files: Sequence[StackFile],
) -> None:
    found = compared(files)
    must_say(found, "not enough evidence", [], None)
    assert found.missing
    assert found.missing[0].rank in found.says


# 06: only a part could be read -------------------------------------------------------------------


def partial(read: Scene, *others: StackFile) -> list[StackFile]:
    return [*texts(read), *others]


HEAD = "Process 2216: sglang::scheduler_TP2\nPython v3.12.3 (/usr/bin/python3.12)\n\n"
BROKEN = StackFile("TP3-2230-1.pyspy.json", dump_json(2230, EVICTS)[:-40])
IN_HALF = StackFile(
    "sample1/tp1.txt",
    dump_text("sglang::scheduler_TP1", 2210, EVICTS)[:150].encode(),
)
PARTIAL = [
    pytest.param(partial({"TP0": CHECKS}, *failed("TP1", GONE)), 1, 2, id="one-of-two"),
    pytest.param(partial({"TP0": CHECKS}, *failed("TP2", DENIED, out=HEAD)), 1, 3, id="head-only"),
    pytest.param(
        partial({"TP0": CHECKS, "TP1": EVICTS}, sizes(tp_size=8)), 2, 8, id="two-of-eight"
    ),
    pytest.param(partial({"TP0": CHECKS, "TP5": EVICTS}), 2, 6, id="a-gap"),
    pytest.param(
        partial(scene(tp(3), CHECKS, TP2=EVICTS), sizes(tp_size=8)), 3, 8, id="three-of-eight"
    ),
    pytest.param(
        partial(scene(tp(4), CHECKS, TP2=EVICTS), sizes(tp_size=8)), 4, 8, id="half-of-them"
    ),
    pytest.param(
        partial(scene(tp(3), CHECKS, TP2=EVICTS), *failed("TP3", NO_TOOL), *failed("TP4", GONE)),
        3,
        5,
        id="no-majority-of-all",
    ),
    pytest.param(partial({"TP0": CHECKS}, IN_HALF), 1, 2, id="cut-text"),
    pytest.param([*jsons({"TP0": CHECKS}), BROKEN, sizes(tp_size=4)], 1, 4, id="cut-json"),
    pytest.param([sizes(tp_size=4), *failed("TP0", GONE)], 0, 4, id="none"),
    pytest.param(partial({"TP0": CHECKS}, sizes(tp_size=16)), 1, 16, id="one-of-sixteen"),
    pytest.param(partial({"TP0": CHECKS}, sizes(tp_size=4, pp_size=2)), 1, 4, id="one-of-a-stage"),
    pytest.param(
        [*nodes(scene(tp(8), CHECKS, TP3=EVICTS), 8), sizes(tp_size=32)],
        8,
        32,
        id="one-host-of-four",
    ),
]


@pytest.mark.parametrize(("files", "read", "known"), PARTIAL)
def test_06_a_part_of_the_ranks_names_nobody(
    files: Sequence[StackFile], read: int, known: int
) -> None:
    found = compared(files)
    must_say(found, "not enough evidence", [], None)
    assert (found.captured, found.ranks) == (read, known)
    assert {one.rank for one in found.missing}.isdisjoint(
        rank for group in found.groups for rank in group.ranks
    )
    assert all(one.reason for one in found.missing)


def test_06_each_failure_keeps_its_own_reason() -> None:
    files = partial(
        {"TP0": CHECKS}, *failed("TP1", GONE), *failed("TP2", DENIED), *failed("TP3", NO_TOOL)
    )
    kinds = {one.rank: one.kind for one in read_files(files).missing}
    assert kinds == {
        "TP1": "process_gone_or_zombie",
        "TP2": "permission",
        "TP3": "tool_missing",
    }
