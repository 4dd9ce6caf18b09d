"""Comparisons of ranks as a diagnostic keeps them, and coredumps that were read."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.coredump.inspect import inspect_coredump
from app.domain.stacks.compare import compare
from app.domain.stacks.reading import read_files
from app.domain.stacks.samples import Missing
from app.domain.stacks.sources import StackFile
from app.domain.stacks.told import told
from tests.coredump_bytes import Gpu, Kernel, dump_bytes
from tests.stacks import Calls, compared, files

GATHER = "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"
FAULT = Kernel("_Z4topkIfEvPT_i", sms=(4, 7), exception=14, error_at=0x40, offsets=(0x50,))
BUSY = Kernel(GATHER, sms=range(24))


def comparison_of(*samples: Mapping[str, Calls], states: Mapping[str, str] = {}) -> dict[str, Any]:
    """The document of *samples*, each rank → its calls."""
    reading = read_files(files(*samples))
    return told(compared(reading, states=states), reading) | {"states": dict(states)}


def comparison_of_bodies(
    bodies: Mapping[str, bytes],
    *,
    pids: Mapping[str, int],
    samples: int,
    missing: Sequence[Missing],
) -> dict[str, Any]:
    """The document of *bodies*, rank → what py-spy wrote, the same in every sample."""
    reading = read_files(
        [
            StackFile(f"{rank}-{pids[rank]}-{number}.pyspy.json", body)
            for number in range(1, samples + 1)
            for rank, body in bodies.items()
        ]
    )
    return told(compare(reading.samples, missing), reading)


def inspected(*kernels: Kernel, path: str = "/var/dumps/core_gpu-14_41871") -> dict[str, Any]:
    """What is read of a dump with *kernels* on one GPU."""
    data = dump_bytes(Gpu(list(kernels)))
    read = inspect_coredump(
        path.rpartition("/")[2], path, len(data), lambda start, length: data[start : start + length]
    )
    return dict(read)
