"""What a whole CUDA coredump says: kernels, places, exceptions, and nothing that is not in it."""

import gzip
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.domain.coredump.exceptions import exception_of
from app.domain.coredump.gpu_state import GpuState
from app.domain.coredump.inspect import inspect_coredump
from app.domain.coredump.reader import read_coredump
from tests.coredump_bytes import CODE_AT, FUNCTION_BYTES, Gpu, Kernel, dump, dump_bytes

GATHER = "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"
GATHER_TEXT = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TOPK = "_Z4topkIfEvPT_i"
TOPK_TEXT = "void topk<float>(float*, int)"


def read(data: bytes) -> GpuState:
    return read_coredump(lambda offset, length: data[offset : offset + length])


def inspected(data: bytes, path: str = "/dumps/core.nvcudmp") -> Mapping[str, Any]:
    return inspect_coredump(
        "core.nvcudmp", path, len(data), lambda offset, length: data[offset : offset + length]
    )


FAULT = Kernel(TOPK, sms=(4, 7), exception=14, error_at=0x40, offsets=(0x50,))


def test_a_hang_in_a_collective_says_which_and_to_compare_the_ranks() -> None:
    document = inspected(dump_bytes(Gpu([Kernel(GATHER, sms=range(24))])))

    assert document["complete"]
    assert document["note"] == (
        "No exception. GPU 0: all SMs with work (24 of 132) are in NCCL AllGather (RING, LL)."
        " A collective moves only once all of its ranks are in it: compare their dumps."
    )
    assert document["exceptions"] == []
    assert document["fingerprint"] is None
    assert document["devices"][0]["sms_with_work"] == 24


def test_a_kernel_has_its_dimensions_its_sms_and_where_its_threads_stood() -> None:
    kernel = Kernel(GATHER, sms=(0, 5), offsets=(0x300, 0x310), warps=4)
    (found,) = inspected(dump_bytes(Gpu([kernel])))["kernels"]

    assert (found["name"], found["mangled"]) == (GATHER_TEXT, GATHER)
    assert (found["grid"], found["block"], found["count"]) == ([24, 1, 1], [512, 1, 1], 1)
    assert (found["sms"], found["blocks"], found["warps"]) == ([0, 5], 2, 8)
    assert found["threads"] == 8 * 32
    assert [(place["offset"], place["threads"], place["warps"]) for place in found["pcs"]] == [
        ("0x300", 128, 4),
        ("0x310", 128, 4),
    ]


def test_an_exception_has_its_name_its_place_and_looks_upstream() -> None:
    document = inspected(dump_bytes(Gpu([FAULT])))
    (found,) = document["exceptions"]

    assert (found["code"], found["name"]) == (14, "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS")
    assert (found["device"], found["sm"], found["kernel"]) == (0, 7, TOPK_TEXT)
    assert (found["pc"], found["offset"], found["pc_exact"]) == (hex(CODE_AT + 0x40), "0x40", True)
    assert (found["block"], found["thread"], found["threads"]) == ([7, 0, 0], [0, 0, 0], 1)
    assert "The faulting kernel is the consumer: look one kernel upstream" in document["note"]


def test_without_an_error_pc_the_place_is_where_the_thread_stood_and_is_said_not_to_be_exact() -> (
    None
):
    (found,) = inspected(dump_bytes(Gpu([replace(FAULT, error_at=None)])))["exceptions"]

    assert (found["offset"], found["pc_exact"]) == ("0x50", False)


def test_what_an_sm_reports_is_added_only_where_no_thread_says_the_same() -> None:
    at = CODE_AT + 0x80
    both = inspected(dump_bytes(Gpu([FAULT], sm_exceptions={7: (14, CODE_AT + 0x40)})))
    gone = inspected(dump_bytes(Gpu([Kernel(TOPK)], sm_exceptions={9: (14, at)})))

    assert len(both["exceptions"]) == 1
    (found,) = gone["exceptions"]
    assert (found["sm"], found["kernel"], found["pc"]) == (9, TOPK_TEXT, hex(at))
    assert (found["threads"], found["thread"]) == (None, None)


def test_a_fault_of_an_sm_in_no_known_code_names_no_kernel() -> None:
    document = inspected(dump_bytes(Gpu([Kernel(TOPK)], sm_exceptions={9: (14, 0x1234)})))

    assert document["exceptions"][0]["kernel"] is None
    assert "a kernel that is not known" in document["note"]
    assert document["fingerprint"] is None


def test_the_fingerprint_is_the_same_for_the_same_fault_and_another_for_another() -> None:
    def of(gpu: Gpu) -> Any:
        return inspected(dump_bytes(gpu))["fingerprint"]

    same = replace(FAULT, sms=(30,), warps=5, error_at=0x90, size=(7, 1, 1))
    anonymous = "_ZN{0}_GLOBAL__N__{1}_5_k2_cu_x4anonEPi"
    built = [
        replace(FAULT, name=anonymous.format(29, "4943d01b")),
        replace(FAULT, name=anonymous.format(29, "aaaad01b")),
    ]

    assert of(Gpu([FAULT])) == of(Gpu([same]))
    assert len(of(Gpu([FAULT]))) == 16
    assert of(Gpu([FAULT])) != of(Gpu([replace(FAULT, exception=6)]))
    assert of(Gpu([FAULT])) != of(Gpu([FAULT], arch="sm_100"))
    assert of(Gpu([FAULT])) != of(Gpu([replace(FAULT, name=GATHER)]))
    assert of(Gpu([built[0]])) == of(Gpu([built[1]]))


def test_the_function_that_threads_are_in_says_more_than_the_kernel() -> None:
    scatter = "ncclDevFunc_ReduceScatter_RING_LL128"
    kernel = Kernel(GATHER, inside=f"_Z{len(scatter)}{scatter}v", offsets=(0x20,))
    (found,) = inspected(dump_bytes(Gpu([kernel])))["kernels"]

    assert found["place"] == "NCCL ReduceScatter (RING, LL128)"
    assert found["pcs"][0]["function"] == f"{scatter}()"
    assert found["name"] == GATHER_TEXT


def test_rows_of_a_later_driver_are_longer_and_read_all_the_same() -> None:
    gpu = Gpu([FAULT, Kernel(GATHER)])
    now, later = read(dump_bytes(gpu)), read(dump_bytes(gpu, extra_row_bytes=24))

    assert later.kernels == now.kernels
    assert later.exceptions == now.exceptions
    assert (now.problems, later.problems) == ((), ())


def test_threads_that_are_not_valid_are_not_counted() -> None:
    (found,) = inspected(dump_bytes(Gpu([Kernel(GATHER, valid_lanes=0xF)])))["kernels"]

    assert found["threads"] == 2 * 2 * 4


def test_two_gpus_are_kept_apart_though_their_grids_have_the_same_number() -> None:
    document = inspected(dump_bytes(Gpu([Kernel(GATHER)]), Gpu([Kernel(TOPK, sms=(1,))])))

    assert [(one["device"], one["name"]) for one in document["kernels"]] == [
        (0, GATHER_TEXT),
        (1, TOPK_TEXT),
    ]
    assert "GPU 1: all SMs with work (1 of 132) are in topk<float>." in document["note"]


def test_gpus_without_work_are_said_to_have_none() -> None:
    document = inspected(dump_bytes(Gpu()))

    assert document["note"].startswith("No exception, and no block of any kernel on any SM")
    assert document["kernels"] == []


def test_one_look_at_a_kernel_that_is_no_collective_does_not_tell_a_hang() -> None:
    kernels = [Kernel(TOPK, sms=range(3)), Kernel(GATHER, sms=range(3, 5))]
    mixed = inspected(dump_bytes(Gpu(kernels)))["note"]
    alone = inspected(dump_bytes(Gpu(kernels[:1])))["note"]

    assert "5 of 132 SMs have work: 3 in topk<float>, 2 in NCCL AllGather (RING, LL)." in mixed
    assert alone.endswith("One dump does not tell standing still from moving.")


def test_a_retired_code_is_told_and_an_unknown_one_keeps_its_number() -> None:
    retired = inspected(dump_bytes(Gpu([replace(FAULT, exception=1)])))

    assert retired["exceptions"][0]["retired"]
    assert "(1, which drivers since CUDA 13.1 no longer report)" in retired["note"]
    assert exception_of(77).name == "CUDBG_EXCEPTION_77"
    assert [code for code in range(37) if exception_of(code).retired] == [1, 2, 3, 11, 13, 15, 16]


def test_an_entry_in_no_code_of_the_dump_has_an_address_for_a_name() -> None:
    elf = dump(Gpu([Kernel(GATHER)]))
    image = next(at for at, row in enumerate(elf.rows) if row[1] == 0x8000_0007)
    elf.rows[image][1] = 1
    (found,) = inspected(elf.written())["kernels"]

    assert (found["name"], found["mangled"]) == (f"code at {CODE_AT:#x}", None)
    assert found["collective"] is None


def test_an_address_in_two_functions_is_in_none() -> None:
    elf = dump(Gpu([Kernel(GATHER, inside=TOPK)]))
    image = next(at for at, row in enumerate(elf.rows) if row[1] == 0x8000_0007)
    second = (CODE_AT + FUNCTION_BYTES).to_bytes(8, "little")
    elf.payloads[image] = elf.payloads[image].replace(second, CODE_AT.to_bytes(8, "little"))

    assert read(elf.written()).kernels[0].mangled is None


def test_commands_are_quoted_for_the_shell() -> None:
    hang, fault = dump_bytes(Gpu([Kernel(GATHER)])), dump_bytes(Gpu([FAULT]))
    (command,) = inspected(hang, "/a b/it's $(x)")["commands"]

    assert command.startswith("cuda-gdb -batch -ex 'target cudacore /a b/it'\"'\"'s $(x)' -ex ")
    assert len(inspected(fault)["commands"]) == 2
    assert "-ex 'x/32i $errorpc-0x100'" in inspected(fault)["commands"][1]


def test_a_compressed_dump_says_the_same_and_is_unpacked_first_in_the_commands() -> None:
    data = dump_bytes(Gpu([FAULT]), padding_bytes=3_000_000)
    plain, packed = inspected(data), inspected(gzip.compress(data), "/d/core.gz")

    assert packed["exceptions"] == plain["exceptions"]
    assert packed["kernels"] == plain["kernels"]
    assert packed["commands"][0] == "gunzip --keep -- /d/core.gz"
    assert "target cudacore /d/core'" in packed["commands"][1]
