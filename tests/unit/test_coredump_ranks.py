"""The dumps of several ranks: who was where, and no word more."""

import pytest

from app.domain.coredump.collectives import collective_of
from app.domain.coredump.document import document
from app.domain.coredump.kept import Document, compared
from app.domain.coredump.ranks import ranks_text
from app.domain.coredump.reader import read_coredump
from tests.coredump_bytes import Gpu, Kernel, dump_bytes

GATHER = "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"
REDUCE = "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE"


def dump(*kernels: Kernel) -> Document:
    data = dump_bytes(Gpu(kernels))
    state = read_coredump(lambda offset, length: data[offset : offset + length])
    return document("core", "/core", state)


IN_GATHER, IN_REDUCE = dump(Kernel(GATHER)), dump(Kernel(REDUCE, sms=(4,)))
IN_TOPK = dump(Kernel("_Z4topkIfEvPT_i"))
FAULTED = dump(Kernel("_Z4topkIfEvPT_i", exception=14, error_at=0x10))


def test_the_rank_that_is_elsewhere_is_named_and_not_accused() -> None:
    ranks: dict[str, Document | str] = {str(rank): IN_GATHER for rank in range(7)}
    found = compared({**ranks, "7": IN_TOPK})

    assert found["says"] == (
        "All SMs with work of ranks 0–6 in NCCL AllGather (RING, LL), rank 7 in topk<float>."
        " Not in that collective: rank 7. One dump of each does not tell which of them moves."
    )
    assert [group["ranks"] for group in found["groups"]] == [list("0123456"), ["7"]]


def test_how_many_sms_a_rank_used_makes_no_difference() -> None:
    other = dump(Kernel(GATHER, sms=range(9)))

    assert len(compared({"TP0": IN_GATHER, "TP1": other})["groups"]) == 1


def test_all_in_one_collective_says_that_nobody_is_known_to_be_missing() -> None:
    says = compared({"TP0": IN_GATHER, "TP1": IN_GATHER})["says"]

    assert says.endswith("All wait in the same place: the dumps do not tell for whom.")


def test_different_collectives_are_said_to_be_different() -> None:
    says = compared({"TP0": IN_GATHER, "TP1": IN_REDUCE})["says"]

    assert "different collectives" in says


def test_a_rank_without_a_dump_is_missing_and_in_no_group() -> None:
    found = compared({"0": IN_GATHER, "1": IN_GATHER, "2": "no pipe"})

    assert found["missing"] == {"2": "no pipe"}
    assert "2 of 3 ranks: no dump of rank 2." in found["says"]
    assert "Not in that collective" not in found["says"]


def test_a_fault_comes_before_those_that_wait_for_it() -> None:
    found = compared({"0": IN_GATHER, "1": IN_GATHER, "2": FAULTED})

    assert found["says"].endswith(
        "Begin with rank 2: an exception was raised there; the others may only wait for it."
    )
    assert (
        "rank 2: CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS in void topk<float>(float*, int)"
        in (found["says"])
    )


def test_the_order_of_the_ranks_changes_nothing() -> None:
    ranks = {"TP10": IN_TOPK, "TP2": IN_GATHER, "TP1": IN_GATHER}

    assert compared(ranks) == compared(dict(reversed(ranks.items())))
    assert compared({})["says"] == "No dump of any rank could be read."


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (["7"], "rank 7"),
        (["0", "1"], "ranks 0, 1"),
        (["TP0", "TP1", "TP2", "TP5"], "ranks TP0–TP2, TP5"),
        (["a", "b"], "ranks a, b"),
    ],
    ids=str,
)
def test_runs_of_ranks_are_written_as_one(ranks: list[str], text: str) -> None:
    assert ranks_text(ranks) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "NCCL AllReduce (RING, LL)"),
        ("ncclDevKernel_AllReduce_Sum_f32_NVLS_TREE_SIMPLE", "NCCL AllReduce (NVLS_TREE, SIMPLE)"),
        ("ncclKernel_AllReduce_RING_LL128_Sum_half", "NCCL AllReduce (RING, LL128)"),
        ("ncclDevKernel_SendRecv", "NCCL SendRecv"),
        ("ncclDevKernel_Broadcast_RING_LL", "NCCL Broadcast (RING, LL)"),
        ("ncclDevFunc_ReduceScatter_TREE_SIMPLE", "NCCL ReduceScatter (TREE, SIMPLE)"),
        ("ncclDevKernel_Reduce_Sum_f16_RING_LL", "NCCL Reduce (RING, LL)"),
        ("ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16", "NCCL AllReduce"),
        ("ncclDevKernel_Generic_4", "NCCL collective"),
        ("sglang::cross_device_reduce_1stage<float, 8>", "custom all-reduce (1stage)"),
        ("_Z22ncclDevKernel_AllGather4ringv", "NCCL AllGather"),
        ("topk<float>", None),
        ("my_nccl_like_AllReduce", None),
    ],
    ids=str,
)
def test_collectives_are_known_by_their_names(name: str, text: str | None) -> None:
    found = collective_of(name)

    assert (str(found) if found else None) == text
