"""Made-up stacks of the ranks of a server, written as py-spy writes them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from app.domain.stacks.compare import Comparison, compare
from app.domain.stacks.counts import Counted
from app.domain.stacks.reading import read_files
from app.domain.stacks.samples import Reading
from app.domain.stacks.sources import StackFile

CASES = Path(__file__).parent / "data" / "cases"
MOMENT = datetime.fromisoformat("2026-11-30T03:02:10+00:00")

ROOT = (
    "event_loop_overlap (sglang/srt/managers/scheduler.py:1790)",
    "decorate_context (torch/utils/_contextlib.py:120)",
    "run_scheduler_process (sglang/srt/managers/scheduler.py:5010)",
    "run (multiprocessing/process.py:108)",
    "_main (multiprocessing/spawn.py:135)",
    "<module> (<string>:1)",
)
WRAPPED = "wrapper (torch/distributed/c10d_logger.py:81)"
BATCH = (
    "forward (sglang/srt/models/qwen2.py:457)",
    "forward (sglang/srt/model_executor/model_runner.py:1860)",
    "run_batch (sglang/srt/managers/scheduler.py:4704)",
)
RECEIVE = (
    "_broadcast_reqs_across_ranks (scheduler_components/request_receiver.py:190)",
    "recv_requests (scheduler_components/request_receiver.py:96)",
)
# Each newest call first, down to the scheduler's loop.
CHECKS_CACHE = (
    "all_reduce (torch/distributed/distributed_c10d.py:3081)",
    WRAPPED,
    "_all_reduce_attn_groups (sglang/srt/mem_cache/hiradix_cache.py:196)",
    "writing_check (sglang/srt/mem_cache/hiradix_cache.py:780)",
    "get_new_batch_prefill (sglang/srt/managers/scheduler.py:2655)",
)
CHECKS_LOADS = (*CHECKS_CACHE[:3], "loading_check (hiradix_cache.py:801)", CHECKS_CACHE[4])
EVICTS = (
    "_delete_leaf (sglang/srt/mem_cache/radix_cache.py:611)",
    "evict (sglang/srt/mem_cache/radix_cache.py:498)",
    "get_new_batch_prefill (sglang/srt/managers/scheduler.py:2710)",
)
EVICTS_ON = ("evict (sglang/srt/mem_cache/radix_cache.py:503)", EVICTS[2])
COLLECTS_GARBAGE = ("gc_collect_main (libpython3.12.so.1.0)", *EVICTS)
AWAITS_GPU = (
    "cudaEventSynchronize (libcudart.so.12)",
    "synchronize (torch/cuda/streams.py:231)",
    "process_batch_result_decode (scheduler_output_processor_mixin.py:402)",
    "process_batch_result (sglang/srt/managers/scheduler.py:3120)",
)
AWAITS_REQUESTS = (
    "broadcast (torch/distributed/distributed_c10d.py:2969)",
    WRAPPED,
    "broadcast_pyobj (sglang/srt/utils/common.py:1440)",
    *RECEIVE,
)
POLLS = ("recv_pyobj (zmq/sugar/socket.py:989)", RECEIVE[1])
SLEEPS_IDLE = ("on_idle (sglang/srt/managers/scheduler.py:5329)",)
SYNCS_MLP = (
    "all_gather_into_tensor (torch/distributed/distributed_c10d.py:4120)",
    WRAPPED,
    "all_gather (sglang/srt/managers/scheduler_dp_attn_mixin.py:71)",
    "prepare_mlp_sync_batch (sglang/srt/managers/scheduler_dp_attn_mixin.py:240)",
)
REDUCES = (
    "all_reduce (torch/distributed/distributed_c10d.py:3252)",
    "GroupCoordinator.all_reduce (distributed/parallel_state.py:699)",
    *BATCH,
)
GATHERS_LOGITS = (
    "all_gather_single (torch/distributed/distributed_c10d.py:4387)",
    "_get_logits (layers/logits_processor.py:1036)",
    *BATCH,
)
COMPUTES = ("linear (torch/nn/functional.py:12)", *BATCH)
RECEIVES_STAGE = (
    "recv (torch/distributed/distributed_c10d.py:2400)",
    "recv_tensor_dict (distributed/parallel_state.py:1100)",
    "_pp_recv_proxy_tensors (sglang/srt/managers/scheduler_pp_mixin.py:400)",
)
AWAITS_LOCK = ("wait (threading.py:359)", "flush (sglang/srt/managers/cache_controller.py:77)")

HELPERS = (
    (
        "Thread-1 (_watchdog_thread)",
        ("_watchdog_once (watchdog.py:139)", "run (threading.py:1010)"),
    ),
    ("InductorSubproc", ("_recv_msg (subproc_pool.py:76)", "run (threading.py:1010)")),
)
Calls = Sequence[str]
Helpers = Sequence[tuple[str, Calls]]


def dump_text(
    title: str,
    pid: int,
    calls: Calls,
    *,
    state: str = "idle",
    helpers: Helpers = HELPERS,
    root: Calls = ROOT,
) -> str:
    """What ``py-spy dump`` prints of a rank whose main thread is in *calls*."""
    lines = [f"Process {pid}: {title}", "Python v3.12.3 (/usr/bin/python3.12)", ""]
    threads: list[tuple[int, str, str, Calls]] = [(pid, state, "MainThread", (*calls, *root))]
    threads += [(pid + 60 + n, "idle", name, frames) for n, (name, frames) in enumerate(helpers)]
    for number, activity, name, frames in threads:
        lines.append(f'Thread {number} ({activity}): "{name}"')
        lines += [f"    {frame}" for frame in frames]
    return "\n".join(lines) + "\n"


def dump_json(pid: int, calls: Calls, *, active: bool = False, owns_gil: bool = False) -> bytes:
    """What ``py-spy dump --json`` prints of it."""
    frames = [_frame(call) for call in (*calls, *ROOT)]
    main = {
        "pid": pid,
        "thread_id": 140_000_000 + pid,
        "thread_name": "MainThread",
        "os_thread_id": pid,
        "active": active,
        "owns_gil": owns_gil,
        "frames": frames,
        "process_info": None,
    }
    return orjson.dumps([main])


def _frame(call: str) -> dict[str, Any]:
    name, _, place = call.rpartition(" (")
    file, _, line = place[:-1].rpartition(":")
    library = place[:-1] if ".so" in place else None
    return {
        "name": name,
        "filename": f"/opt/venv/{file or place[:-1]}",
        "short_filename": file or place[:-1],
        "module": library,
        "line": int(line) if line.isdigit() else 0,
        "locals": None,
    }


def files(*samples: Mapping[str, Calls]) -> list[StackFile]:
    """Text files of *samples*, each rank → its calls."""
    return [
        StackFile(
            f"sample{number}/{rank.lower()}.txt",
            dump_text(f"sglang::scheduler_{rank}", pid_of(rank), calls).encode(),
        )
        for number, sample in enumerate(samples, start=1)
        for rank, calls in sample.items()
    ]


def pid_of(rank: str) -> int:
    """A number of its own for each rank, far enough from the next for its threads."""
    return 10_000 + int.from_bytes(rank.encode()) % 50_021 * 80


def files_in(folder: Path) -> list[StackFile]:
    """The files under *folder*, named as from there."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return [StackFile(str(path.relative_to(folder)), path.read_bytes()) for path in found]


def case(name: str) -> list[StackFile]:
    """The files of a case that is kept with the tests."""
    [folder] = CASES.glob(f"{name}-*")
    return files_in(folder)


def compared(
    read: Sequence[StackFile] | Reading,
    *,
    counts: Sequence[Counted] = (),
    states: Mapping[str, str] | None = None,
) -> Comparison:
    """What the files say together."""
    reading = read if isinstance(read, Reading) else read_files(read)
    return compare(
        reading.samples, reading.missing, counts=counts, states={**reading.states, **(states or {})}
    )


def ranks(many: int, calls: Calls, **others: Calls) -> dict[str, Calls]:
    """TP0 … in *calls*, but for *others*: ``TP3=EVICTS``."""
    return {f"TP{number}": others.get(f"TP{number}", calls) for number in range(many)}
