"""From inspected coredumps to claims: a fault is established, a place is not a cause."""

from typing import Any

from app.domain.coredump.inspect import inspect_coredump
from app.domain.coredump.kept import MOST_KERNELS, compared, shortened
from app.domain.coredump_findings import Dump, coredump_findings
from app.domain.diagnosis import diagnose
from app.domain.urgency import Rank, judge
from tests.coredump_bytes import Gpu, Kernel, dump_bytes

GATHER = "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"
TOPK = "_Z4topkIfEvPT_i"


def document(*kernels: Kernel, cut_bytes: int = 0) -> dict[str, Any]:
    data = dump_bytes(Gpu(kernels))
    data = data[: len(data) - cut_bytes]

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    return shortened(inspect_coredump("core", "core", len(data), read))


IN_GATHER, IN_TOPK = document(Kernel(GATHER)), document(Kernel(TOPK))
FAULTED = document(Kernel(TOPK, exception=14, error_at=0x10))
CUT = document(Kernel(TOPK), cut_bytes=100)


def found(*documents: dict[str, Any]) -> dict[str, Any]:
    """What these say as the dumps of TP0, TP1, …"""
    dumps = [Dump(f"TP{at}", 70 + at, one) for at, one in enumerate(documents)]
    many = {one.rank: one.document for one in dumps}
    together = compared(many) if len(many) > 1 else None
    return coredump_findings(dumps, together).as_json()


def test_an_exception_is_established_with_its_kernel_and_where_it_stood() -> None:
    told = found(FAULTED)
    [claim] = told["claims"]
    assert (claim["id"], claim["status"], claim["level"]) == ("gpu-exception", "established", "bad")
    assert claim["says"].startswith("CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS in void topk<float>")
    [place] = claim["evidence"]
    assert place["artifact"] == "artifact 70"
    assert place["at"].startswith("TP0: GPU 0 SM ")
    assert told["problem_class"] == "crash"


def test_the_same_fault_on_several_ranks_is_one_claim() -> None:
    [claim] = found(FAULTED, FAULTED)["claims"]
    assert claim["says"].endswith("on the GPU of TP0, TP1.")
    assert len(claim["evidence"]) == 2


def test_a_dump_without_exception_rules_out_a_fault_and_claims_nothing() -> None:
    told = found(IN_GATHER, IN_GATHER)
    assert (told["claims"], told["problem_class"]) == ([], None)
    assert [one["id"] for one in told["ruled_out"]] == ["gpu-no-exception"]


def test_a_fault_in_a_later_dump_ends_what_an_earlier_one_ruled_out() -> None:
    assert diagnose([], [found(FAULTED), found(IN_GATHER)])["ruled_out"] == []


def test_ranks_in_different_kernels_are_a_hypothesis_and_the_few_come_first() -> None:
    [claim] = found(IN_GATHER, IN_TOPK, IN_GATHER)["claims"]
    assert (claim["id"], claim["status"], claim["level"]) == (
        "gpu-places-differ",
        "hypothesis",
        "warn",
    )
    assert claim["evidence"][0]["at"] == "TP1: kernels"


def test_a_dump_that_is_cut_short_says_so_and_is_no_evidence_of_health() -> None:
    told = found(CUT)
    [claim] = told["claims"]
    assert (claim["id"], claim["status"]) == ("coredump-unreadable", "unknown")
    assert told["ruled_out"] == []


def test_a_rank_without_a_dump_is_missing_with_its_reason() -> None:
    told = compared({"TP0": IN_GATHER, "TP1": "No pipe.", "TP2": CUT})
    assert told["missing"]["TP1"] == "No pipe."
    assert told["missing"]["TP2"] == CUT["note"]
    assert [one["ranks"] for one in told["groups"]] == [["TP0"]]


def test_what_is_kept_of_a_dump_is_bounded_and_counted() -> None:
    many = document(*(Kernel(f"_Z3k{at:03}v", sms=(at % 100,)) for at in range(MOST_KERNELS + 9)))
    assert len(many["kernels"]) == MOST_KERNELS
    assert many["kernels_total"] == MOST_KERNELS + 9
    assert all(one["pcs_total"] >= len(one["pcs"]) for one in many["kernels"])


def test_a_fault_makes_the_incident_a_crash_and_is_told_first() -> None:
    judged = judge([], findings=[found(FAULTED)])
    assert (judged.problem_class, judged.rank) == ("crash", Rank.FAILING)
    assert judged.strongest is not None
    assert judged.strongest["id"] == "gpu-exception"
    guess = diagnose([], [found(FAULTED)])["best_guess"]
    assert "upstream" in guess["says"]
