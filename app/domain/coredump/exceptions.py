"""The exceptions of CUDA's debugger interface, by their codes (``cudadebugger.h``)."""

from collections.abc import Mapping
from dataclasses import dataclass

NONE = 0
_PREFIX = "CUDBG_EXCEPTION_"

_WORDS: Mapping[int, tuple[str, str]] = {
    1: ("LANE_ILLEGAL_ADDRESS", "a thread used an illegal address"),
    2: ("LANE_USER_STACK_OVERFLOW", "a thread overran its stack"),
    3: ("DEVICE_HARDWARE_STACK_OVERFLOW", "a stack of the hardware overflowed"),
    4: ("WARP_ILLEGAL_INSTRUCTION", "an illegal instruction"),
    5: ("WARP_OUT_OF_RANGE_ADDRESS", "an address out of range"),
    6: ("WARP_MISALIGNED_ADDRESS", "a misaligned address"),
    7: ("WARP_INVALID_ADDRESS_SPACE", "an instruction for another address space"),
    8: ("WARP_INVALID_PC", "an invalid program counter"),
    9: ("WARP_HARDWARE_STACK_OVERFLOW", "a stack of the hardware overflowed"),
    10: ("DEVICE_ILLEGAL_ADDRESS", "an illegal address, found by the memory unit"),
    11: ("LANE_MISALIGNED_ADDRESS", "a thread used a misaligned address"),
    12: ("WARP_ASSERT", "an assertion in the kernel failed"),
    13: ("LANE_SYSCALL_ERROR", "a device-side call failed"),
    14: ("WARP_ILLEGAL_ADDRESS", "an illegal address"),
    15: ("LANE_NONMIGRATABLE_ATOMSYS", "a system-wide atomic on memory that cannot migrate"),
    16: ("LANE_INVALID_ATOMSYS", "an invalid system-wide atomic"),
    17: ("CLUSTER_OUT_OF_RANGE_ADDRESS", "an address out of the range of the cluster"),
    18: ("CLUSTER_BLOCK_NOT_PRESENT", "a block of the cluster was not there"),
    19: ("WARP_STACK_CANARY", "the guard value of a stack was overwritten"),
    20: ("WARP_TMEM_ACCESS_CHECK", "a forbidden access to tensor memory"),
    21: ("WARP_TMEM_LEAK", "tensor memory was not given back"),
    22: ("WARP_CALL_REQUIRES_NEWER_DRIVER", "a call that needs a newer driver"),
    23: ("WARP_MISALIGNED_PC", "a misaligned program counter"),
    24: ("WARP_PC_OVERFLOW", "the program counter left the address space"),
    25: ("WARP_MISALIGNED_REG", "a misaligned register"),
    26: ("WARP_ILLEGAL_INSTR_ENCODING", "an instruction with an illegal encoding"),
    27: ("WARP_ILLEGAL_INSTR_PARAM", "an instruction with an illegal parameter"),
    28: ("WARP_OUT_OF_RANGE_REGISTER", "a register out of range"),
    29: ("WARP_INVALID_CONST_ADDR_LDC", "an invalid address of constant memory"),
    30: ("WARP_MMU_FAULT", "a fault of the memory unit"),
    31: ("WARP_ARRIVE", "more arrivals at a barrier than it expects, or the barrier is locked"),
    32: ("CLUSTER_POISON", "an uncorrectable error in memory of the cluster"),
    33: ("WARP_API_STACK_ERROR", "the stack limit of the API was exceeded"),
    34: ("WARP_BLOCK_NOT_PRESENT", "a block was not there"),
    35: ("WARP_USER_STACK_OVERFLOW", "a thread overran its stack"),
    36: ("TMA_SYSCALL", "a call of the tensor memory accelerator failed"),
    0xFFFF_FFFF: ("UNKNOWN", "an exception that the driver did not know"),
}
_RETIRED = frozenset({1, 2, 3, 11, 13, 15, 16})  # no longer reported since CUDA 13.1


@dataclass(frozen=True, slots=True)
class ExceptionCode:
    """*name* is that of the header; *retired*: drivers since CUDA 13.1 do not report it."""

    code: int
    name: str
    says: str
    retired: bool


def exception_of(code: int) -> ExceptionCode:
    """What *code* means; one that no header names keeps its number."""
    name, says = _WORDS.get(code, (str(code), "an exception that has no name here"))
    return ExceptionCode(code, f"{_PREFIX}{name}", says, code in _RETIRED)
