"""NCCL's answers, written after the shapes in its documents and sources."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

HASH = "0xcf264af53edbe986"
SHORT = "cf264af53edbe986"
KINDS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")


def rank(
    number: int,
    all_reduce: int = 0,
    *,
    pid: int | None = None,
    host: str = "10.0.0.14",
    counts: Mapping[str, int] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A rank that answered; by default its pid is 100 and its number."""
    return {
        "rank": number,
        "host": host,
        "pid": 100 + number if pid is None else pid,
        "cuda_dev": number,
        "nvml_dev": number,
        "status": {
            "init_state": 0,
            "async_error": 0,
            "finalize_called": False,
            "destroy_flag": False,
            "abort_flag": False,
            **status,
        },
        "collective_counts": {
            **dict.fromkeys(KINDS, 0),
            "AllReduce": all_reduce,
            **(counts or {}),
        },
    }


def lost(number: int, *, dead: bool = False, silent: bool = True) -> dict[str, Any]:
    """A rank that NCCL has no data of."""
    told = {key: rank(number)[key] for key in ("rank", "host", "pid", "cuda_dev", "nvml_dev")}
    return told | {"status": {"unresponsive": silent, "considered_dead": dead}}


def communicator(
    ranks: Sequence[Mapping[str, Any]],
    missing: Sequence[Mapping[str, Any]] = (),
    name: str = HASH,
) -> dict[str, Any]:
    return {
        "hash": name,
        "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e",
        "size": len(ranks) + len(missing),
        "ranks_count": len(ranks),
        "missing_ranks_count": len(missing),
        "ranks": list(ranks),
        "missing_ranks": list(missing),
    }


def answer(*communicators: Mapping[str, Any], at: str = "2026-01-01 03:00:00") -> bytes:
    """JSON as NCCL writes it since 2.28.7."""
    told = {
        "nccl_version": "2.29.2",
        "cuda_runtime_version": 13000,
        "cuda_driver_version": 13000,
        "timestamp": at,
        "communicators_count": len(communicators),
        "communicators": list(communicators),
        "ras": {"collection_time_sec": 0.0, "timeouts_count": 0},
    }
    return json.dumps(told, indent=2).encode()


def counts(*all_reduce: int, at: str = "2026-01-01 03:00:00") -> bytes:
    """One communicator whose ranks launched so many."""
    return answer(communicator([rank(number, n) for number, n in enumerate(all_reduce)]), at=at)


def text(*, size: int, problems: str = "OK", errors: str = "", warnings: str = "") -> bytes:
    """Text as NCCL writes it, with one communicator in its table."""
    return (
        "NCCL version 2.27.5 compiled with CUDA 12.8\n"
        "CUDA runtime version 12080, driver version 12080\n\n"
        "Job summary\n===========\n\n"
        "  Nodes  Processes         GPUs  Processes     GPUs\n"
        "(total)   per node  per process    (total)  (total)\n"
        f"      1  {size:9}            1  {size:9}  {size:7}\n\n"
        "Communicators... (0.00s)\n=============\n\n"
        "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
        "    #  in group  per comm  per node  per comm  in group\n"
        f"    0         1         1  {size:8}  {size:8}  {size:8}   RUNNING  {problems}\n"
        f"\nErrors\n======\n\n{errors}Warnings\n========\n\n{warnings}"
    ).encode()


def where(number: int) -> str:
    return f"GPU {number} managed by process {100 + number} on node 10.0.0.14"


def behind(*groups: tuple[int, Sequence[int] | int], kind: str = "AllReduce") -> str:
    """The warning of a mismatch: (count, ranks that are listed, or how many are not)."""
    lines = [
        f"#0-0 ({SHORT}) MISMATCH",
        f"  Communicator ranks have different {kind} operation counts",
    ]
    for count, ranks in groups:
        if isinstance(ranks, int):
            lines.append(f"  {ranks} ranks have launched up to operation {count}")
        elif len(ranks) == 1:
            launched = f"launched up to operation {count}" if count else ""
            what = launched or "not launched any operations"
            lines.append(f"  Rank {ranks[0]} has {what} -- {where(ranks[0])}")
        else:
            lines.append(f"  {len(ranks)} ranks have launched up to operation {count}")
            lines += [f"  Rank {number} -- {where(number)}" for number in ranks]
    return "\n".join(lines) + "\n\n"
