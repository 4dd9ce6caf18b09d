"""Kernels that wait for other GPUs, by their names.

NCCL names its kernels ``ncclDevKernel_<operation>[_<reduction>_<type>]_<algorithm>_<protocol>``
(before 2.19 ``ncclKernel_…``, with the reduction at the end), and the functions that they call
``ncclDevFunc_…`` likewise; kernels on symmetric memory have a scheme of their own. A kernel may
run the work of another operation, so the function that the threads are in says more.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_OPERATIONS = (
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "Broadcast",
    "SendRecv",
    "AllToAll",
    "AlltoAll",
    "Reduce",
    "Gather",
    "Scatter",
    "Generic",
)
_ALGORITHMS = ("COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS_TREE", "NVLS", "RING", "TREE", "PAT")
_NCCL = re.compile(r"nccl(?:Symk?|Gin)*(?:Dev)?(Kernel|Func)_(" + "|".join(_OPERATIONS) + ")")
_ALGORITHM = re.compile("_(" + "|".join(_ALGORITHMS) + ")(?=_|$)")
_PROTOCOL = re.compile("_(LL128|LL|SIMPLE)(?=_|$)", re.IGNORECASE)
_CUSTOM = re.compile(r"cross_device_reduce_(\dstage)")


@dataclass(frozen=True, slots=True)
class Collective:
    """*algorithm* and *protocol* are None where the name does not have them."""

    library: str
    operation: str
    algorithm: str | None = None
    protocol: str | None = None

    def __str__(self) -> str:
        how = ", ".join(part for part in (self.algorithm, self.protocol) if part)
        return f"{self.library} {self.operation}" + (f" ({how})" if how else "")


def collective_of(name: str) -> Collective | None:
    """What the function *name* (without its parameters) exchanges; None: nothing that is known."""
    nccl = _NCCL.search(name)
    if nccl is not None:
        rest = name[nccl.end() :]
        algorithm, protocol = _ALGORITHM.search(rest), _PROTOCOL.search(rest)
        return Collective(
            "NCCL",
            "collective" if nccl[2] == "Generic" else nccl[2],
            algorithm[1] if algorithm else None,
            protocol[1].upper() if protocol else None,
        )
    custom = _CUSTOM.search(name)
    if custom is not None:
        return Collective("custom", "all-reduce", custom[1])
    return None


def collective_in(kernel: str, functions: Iterable[str]) -> Collective | None:
    """What *kernel* exchanges, by the *functions* that most of its threads are in, else its own."""
    for function in functions:
        if "Func_" in function and (found := collective_of(function)) is not None:
            return found
    return collective_of(kernel)
