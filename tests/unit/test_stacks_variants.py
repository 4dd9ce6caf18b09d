"""The named cases 01 and 03 over again with other sizes, engines, forms and gaps.

Each scene says what a careful person would: which ranks stand apart, or why nobody can be named.
"""

import re
from collections.abc import Sequence

import pytest

from app.domain.stacks.sources import StackFile
from tests import stacks
from tests.stack_scenes import (
    ALL_AT_ONCE,
    BARRIER,
    CHECKS,
    COPIES,
    DENIED,
    DEVICE,
    DP_ATTENTION,
    DRIVER_EVENT,
    EVICTS,
    EXPERTS,
    GPU,
    HIP_EVENT,
    HIP_STREAM,
    IN_OTHER_WORDS,
    LOADS_WEIGHTS,
    NO_TOOL,
    NPU,
    OLD_CHECKS,
    OLD_EVICTS,
    OLD_ROOT,
    PIPELINE,
    REPLAYS_GRAPH,
    REPLICAS,
    REQUESTS,
    START_ROOT,
    STREAM,
    TOLIST,
    TORN_TP3,
    VLLM_AWAITS_COPY,
    VLLM_IDLE,
    VLLM_PREPARES,
    VLLM_REDUCES,
    VLLM_ROOT,
    Calls,
    failed,
    jsons,
    must_say,
    nodes,
    one_text,
    scene,
    texts,
    tp,
)
from tests.stacks import compared

# 01: one rank is elsewhere while the others wait in a collective ---------------------------------

STANDS = [scene(tp(8), CHECKS, TP3=EVICTS)] * 2
ONE_APART = [
    pytest.param(texts(scene(tp(4), CHECKS, TP1=EVICTS)), ["TP1"], None, id="four-ranks"),
    pytest.param(texts(scene(tp(16), CHECKS, TP15=EVICTS)), ["TP15"], None, id="sixteen-ranks"),
    pytest.param(texts(scene(tp(2), CHECKS, TP0=EVICTS)), ["TP0"], None, id="two-ranks"),
    pytest.param(texts(*[scene(tp(2), CHECKS, TP0=EVICTS)] * 2), ["TP0"], True, id="two-twice"),
    pytest.param(jsons(*STANDS), ["TP3"], True, id="json-in-one-folder"),
    pytest.param(one_text(STANDS[0]), ["TP3"], None, id="all-in-one-text"),
    pytest.param(nodes(scene(tp(16), CHECKS, TP11=EVICTS), 8), ["TP11"], None, id="two-hosts"),
    pytest.param(
        texts(scene(tp(8), OLD_CHECKS, TP5=OLD_EVICTS), root=OLD_ROOT),
        ["TP5"],
        None,
        id="sglang-0.4",
    ),
    pytest.param(
        texts(
            scene(tp(4), VLLM_REDUCES, TP2=VLLM_PREPARES), title="VLLM::Worker_{}", root=VLLM_ROOT
        ),
        ["TP2"],
        None,
        id="vllm",
    ),
    pytest.param(
        texts(
            *[scene(tp(4), VLLM_REDUCES, TP2=VLLM_PREPARES)] * 3,
            title="VLLM::Worker_{}",
            root=VLLM_ROOT,
        ),
        ["TP2"],
        True,
        id="vllm-three-times",
    ),
    pytest.param(
        texts(scene(tp(4), VLLM_REDUCES, TP2=VLLM_IDLE), title="VLLM::Worker_{}", root=VLLM_ROOT),
        ["TP2"],
        None,
        id="vllm-one-waits-for-work",
    ),
    pytest.param(
        texts(scene(DP_ATTENTION, stacks.SYNCS_MLP, DP1_TP6=EVICTS)),
        ["DP1_TP6"],
        None,
        id="attention-dp",
    ),
    pytest.param(
        texts(
            {
                **scene(PIPELINE[:4], CHECKS, PP0_TP2=EVICTS),
                **scene(PIPELINE[4:], stacks.RECEIVES_STAGE),
            }
        ),
        ["PP0_TP2"],
        None,
        id="pipeline",
    ),
    pytest.param(
        texts(
            {
                **scene(REPLICAS[:4], REQUESTS, DP0_TP0=stacks.POLLS),
                **scene(REPLICAS[4:], CHECKS, DP1_TP3=EVICTS),
            }
        ),
        ["DP1_TP3"],
        None,
        id="one-replica-of-two",
    ),
    pytest.param(texts(scene(EXPERTS, CHECKS, TP4_EP4=EVICTS)), ["TP4_EP4"], None, id="experts"),
    pytest.param(
        texts(scene(ALL_AT_ONCE, CHECKS, DP1_PP0_TP1_EP1=EVICTS)),
        ["DP1_PP0_TP1_EP1"],
        None,
        id="tp-pp-dp-ep",
    ),
    pytest.param(
        [
            *texts({rank: c for rank, c in STANDS[0].items() if rank != "TP6"}),
            *failed("TP6", DENIED),
        ],
        ["TP3"],
        None,
        id="one-more-is-missing",
    ),
    pytest.param(
        texts(*[scene(tp(8), CHECKS, TP3=stacks.COLLECTS_GARBAGE)] * 2),
        ["TP3"],
        None,
        id="it-collects-garbage",
    ),
    pytest.param(
        texts(scene(tp(8), CHECKS, TP3=EVICTS), scene(tp(8), CHECKS, TP3=stacks.EVICTS_ON)),
        ["TP3"],
        False,
        id="it-moves",
    ),
    pytest.param(
        texts(scene(tp(8), BARRIER, TP7=LOADS_WEIGHTS), root=START_ROOT),
        ["TP7"],
        None,
        id="one-still-loads-weights",
    ),
    pytest.param(
        texts(*[scene(tp(8), CHECKS, TP3=stacks.AWAITS_LOCK)] * 2),
        ["TP3"],
        True,
        id="it-waits-for-a-lock",
    ),
]


@pytest.mark.parametrize(("files", "outliers", "stuck"), ONE_APART)
def test_01_the_rank_that_is_not_in_the_collective_is_named(
    files: Sequence[StackFile], outliers: Sequence[str], stuck: bool | None
) -> None:
    must_say(compared(files), "rank divergence", outliers, stuck)


@pytest.mark.parametrize("calls", IN_OTHER_WORDS.values(), ids=IN_OTHER_WORDS.keys())
def test_01_a_collective_is_known_by_the_names_of_its_library(calls: Calls) -> None:
    found = compared(texts(scene(tp(8), calls, TP3=EVICTS)))
    must_say(found, "rank divergence", ["TP3"], None)
    assert found.ground == "awaited"


@pytest.mark.parametrize(("samples", "outliers", "stuck"), [(1, [], None), (3, ["TP3"], True)])
def test_01_launches_that_no_gpu_takes_are_known_after_some_samples(
    samples: int, outliers: Sequence[str], stuck: bool | None
) -> None:
    found = compared(texts(*[scene(tp(8), REPLAYS_GRAPH, TP3=EVICTS)] * samples))
    assert (list(found.outliers), found.stuck) == (outliers, stuck)


def test_01_a_stack_that_was_read_in_motion_accuses_nobody() -> None:
    found = compared([*jsons(STANDS[0]), TORN_TP3])
    must_say(found, "not enough evidence", [], None)


def test_01_half_of_the_ranks_elsewhere_are_no_outliers_of_a_crowd() -> None:
    half = scene(tp(8), EVICTS, TP0=CHECKS, TP1=CHECKS, TP2=CHECKS)
    found = compared(texts(half))
    assert (found.outliers, found.stuck) == ((), None)
    assert "Nothing here tells which side left the other." in found.says


# 03: the collective hides behind a wait for the GPU ----------------------------------------------

HIDDEN = [
    pytest.param(texts(scene(tp(8), calls, TP6=REQUESTS)), ["TP6"], None, id=name)
    for name, calls in {
        "event": GPU,
        "event-of-the-driver": DRIVER_EVENT,
        "event-of-amd": HIP_EVENT,
        "stream": STREAM,
        "stream-of-amd": HIP_STREAM,
        "device": DEVICE,
        "copy": COPIES,
        "no-call-is-shown": TOLIST,
        "event-of-ascend": NPU,
    }.items()
] + [
    pytest.param(texts(scene(tp(4), GPU, TP0=REQUESTS)), ["TP0"], None, id="four-ranks"),
    pytest.param(texts(*[scene(tp(16), GPU, TP9=REQUESTS)] * 2), ["TP9"], True, id="sixteen-twice"),
    pytest.param(jsons(*[scene(tp(8), GPU, TP6=REQUESTS)] * 2), ["TP6"], True, id="json-twice"),
    pytest.param(texts(scene(tp(8), GPU, TP6=EVICTS)), ["TP6"], None, id="the-other-works"),
    pytest.param(texts(scene(tp(8), GPU, TP6=stacks.REDUCES)), ["TP6"], None, id="it-is-in-one"),
    pytest.param(
        texts(
            scene(tp(4), VLLM_AWAITS_COPY, TP3=VLLM_IDLE), title="VLLM::Worker_{}", root=VLLM_ROOT
        ),
        ["TP3"],
        None,
        id="vllm",
    ),
    pytest.param(nodes(scene(tp(16), GPU, TP8=REQUESTS), 8), ["TP8"], None, id="two-hosts"),
    pytest.param(
        [
            *texts({rank: GPU for rank in tp(8) if rank not in ("TP2", "TP6")} | {"TP6": REQUESTS}),
            *failed("TP2", NO_TOOL),
        ],
        ["TP6"],
        None,
        id="one-more-is-missing",
    ),
]


@pytest.mark.parametrize(("files", "outliers", "stuck"), HIDDEN)
def test_03_the_rank_that_does_not_wait_for_its_gpu_is_named(
    files: Sequence[StackFile], outliers: Sequence[str], stuck: bool | None
) -> None:
    found = compared(files)
    must_say(found, "rank divergence", outliers, stuck)


@pytest.mark.parametrize("samples", [1, 2, 3])
@pytest.mark.parametrize("calls", [GPU, HIP_EVENT, STREAM, DEVICE, TOLIST], ids=range(5))
def test_03_all_at_the_gpu_is_how_a_busy_server_looks(calls: Calls, samples: int) -> None:
    found = compared(texts(*[scene(tp(8), calls)] * samples))
    assert (found.outliers, found.stuck) == ((), None)
    assert found.verdict in ("symmetric", "no divergence")


# One sample --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(texts(scene(tp(8), CHECKS, TP3=EVICTS)), id="awaited"),
        pytest.param(texts(scene(tp(8), GPU, TP6=REQUESTS)), id="rare"),
        pytest.param(texts(scene(tp(2), stacks.GATHERS_LOGITS, TP0=REQUESTS)), id="pair"),
        pytest.param(texts(scene(tp(4), CHECKS, TP1=stacks.CHECKS_LOADS)), id="collectives"),
    ],
)
def test_one_sample_says_what_it_is_and_asks_for_a_second(files: Sequence[StackFile]) -> None:
    found = compared(files)
    assert found.stuck is None
    assert "One sample cannot tell slow from stuck" in found.says
    assert "busy server" in found.says
    assert "Two more samples" in " ".join(found.settles)
    assert not re.search(r"culprit|at fault|to blame|cause is|caused by", found.says)
