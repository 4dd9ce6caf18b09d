"""Scenes of other engines, sizes, forms and gaps than the named cases have."""

from collections.abc import Mapping, Sequence

import orjson

from app.domain.stacks.compare import Comparison
from app.domain.stacks.sources import StackFile
from tests import stacks
from tests.stacks import dump_json, dump_text, pid_of

Calls = Sequence[str]
Scene = Mapping[str, Calls]

OLD_ROOT = (  # SGLang 0.4
    "event_loop_normal (sglang/srt/managers/scheduler.py:610)",
    "decorate_context (torch/utils/_contextlib.py:116)",
    "run_scheduler_process (sglang/srt/managers/scheduler.py:2215)",
    "run (multiprocessing/process.py:108)",
    "_bootstrap (multiprocessing/process.py:314)",
    "_main (multiprocessing/spawn.py:135)",
    "spawn_main (multiprocessing/spawn.py:122)",
    "<module> (<string>:1)",
)
VLLM_ROOT = (
    "worker_busy_loop (vllm/v1/executor/multiproc_executor.py:742)",
    "worker_main (vllm/v1/executor/multiproc_executor.py:663)",
    "run (multiprocessing/process.py:108)",
    "_bootstrap (multiprocessing/process.py:314)",
    "_main (multiprocessing/spawn.py:135)",
    "<module> (<string>:1)",
)
VLLM_REDUCES = (
    "all_reduce (vllm/distributed/device_communicators/pynccl.py:172)",
    "all_reduce (vllm/distributed/device_communicators/cuda_communicator.py:140)",
    "_all_reduce_out_place (vllm/distributed/parallel_state.py:351)",
    "all_reduce (vllm/distributed/parallel_state.py:133)",
    "tensor_model_parallel_all_reduce (vllm/distributed/communication_op.py:14)",
    "forward (vllm/model_executor/layers/linear.py:1290)",
    "forward (vllm/model_executor/models/llama.py:113)",
    "execute_model (vllm/v1/worker/gpu_model_runner.py:1370)",
    "execute_model (vllm/v1/worker/gpu_worker.py:293)",
)
VLLM_PREPARES = (
    "_prepare_inputs (vllm/v1/worker/gpu_model_runner.py:655)",
    "execute_model (vllm/v1/worker/gpu_model_runner.py:1298)",
    "execute_model (vllm/v1/worker/gpu_worker.py:293)",
)
VLLM_IDLE = (
    "acquire_read (vllm/distributed/device_communicators/shm_broadcast.py:460)",
    "dequeue (vllm/distributed/device_communicators/shm_broadcast.py:520)",
)
VLLM_AWAITS_COPY = (
    "synchronize (torch/cuda/streams.py:231)",
    "get_output (vllm/v1/worker/gpu_model_runner.py:220)",
    "sample_tokens (vllm/v1/worker/gpu_worker.py:540)",
)
OLD_CHECKS = (
    "all_reduce (torch/distributed/distributed_c10d.py:2806)",
    "wrapper (torch/distributed/c10d_logger.py:83)",
    "writing_check (sglang/srt/mem_cache/hiradix_cache.py:163)",
    "get_new_batch_prefill (sglang/srt/managers/scheduler.py:1411)",
    "get_next_batch_to_run (sglang/srt/managers/scheduler.py:1372)",
)
OLD_EVICTS = (
    "_delete_leaf (sglang/srt/mem_cache/radix_cache.py:388)",
    "evict (sglang/srt/mem_cache/hiradix_cache.py:205)",
    "get_new_batch_prefill (sglang/srt/managers/scheduler.py:1466)",
    "get_next_batch_to_run (sglang/srt/managers/scheduler.py:1372)",
)
GPU_RESULT = (
    "process_batch_result_decode (scheduler_output_processor_mixin.py:402)",
    "process_batch_result (sglang/srt/managers/scheduler.py:3120)",
)
HIP_EVENT = ("hipEventSynchronize (libamdhip64.so.6)", *stacks.AWAITS_GPU[1:])
HIP_STREAM = ("hipStreamSynchronize (libamdhip64.so.6)", *GPU_RESULT)
STREAM = ("synchronize (torch/cuda/streams.py:105)", *GPU_RESULT)
DEVICE = ("synchronize (torch/cuda/__init__.py:1040)", *GPU_RESULT)
DRIVER_EVENT = ("cuEventSynchronize (libcuda.so.1)", *stacks.AWAITS_GPU[1:])
COPIES = (
    "cudaMemcpyAsync (libcudart.so.12)",
    "cudaStreamSynchronize (libcudart.so.12)",
    *GPU_RESULT,
)
TOLIST = GPU_RESULT  # a method of C is not shown: the newest call is the one that makes it
NPU = ("synchronize (torch_npu/npu/streams.py:190)", *GPU_RESULT)
IN_OTHER_WORDS = {  # collectives of libraries that do not use torch's names
    "expert-dispatch": (
        "low_latency_dispatch (deep_ep/buffer.py:560)",
        "_dispatch_core (sglang/srt/layers/moe/token_dispatcher/deepep.py:610)",
        *stacks.BATCH,
    ),
    "expert-combine": (
        "combine (deep_ep/buffer.py:460)",
        "_combine_core (sglang/srt/layers/moe/token_dispatcher/deepep.py:350)",
        *stacks.BATCH,
    ),
    "own-kernel": (
        "all_reduce (sgl_kernel/allreduce.py:30)",
        "all_reduce (distributed/device_communicators/custom_all_reduce.py:370)",
        *stacks.REDUCES[1:],
    ),
    "fused-with-a-norm": (
        "trtllm_allreduce_fusion (flashinfer/comm/trtllm_ar.py:900)",
        "flashinfer_allreduce_residual_rmsnorm (sglang/srt/layers/flashinfer_comm_fusion.py:190)",
        *stacks.BATCH,
    ),
    "symmetric-memory": (
        "all_reduce (torch/distributed/_symmetric_memory/__init__.py:600)",
        *stacks.BATCH,
    ),
    "nccl-alone": (
        "ncclGroupEndInternal (libnccl.so.2)",
        "pncclAllReduce (libnccl.so.2)",
        *stacks.BATCH,
    ),
}
REPLAYS_GRAPH = (
    "replay (torch/cuda/graphs.py:88)",
    "replay (sglang/srt/model_executor/cuda_graph_runner.py:600)",
    *stacks.BATCH[1:],
)
TAKES_WEIGHTS = (
    "broadcast (torch/distributed/distributed_c10d.py:2969)",
    "update_weights_from_distributed (sglang/srt/model_executor/model_runner.py:910)",
    "update_weights_from_distributed (sglang/srt/managers/tp_worker.py:260)",
    "update_weights_from_distributed (scheduler_update_weights_mixin.py:70)",
    "__call__ (sglang/utils.py:480)",
    "process_input_requests (sglang/srt/managers/scheduler.py:1150)",
)
LOADS_WEIGHTS = (
    "load_file (safetensors/torch.py:313)",
    "load_weights (sglang/srt/models/llama.py:610)",
    "load_model (sglang/srt/model_executor/model_runner.py:700)",
    "__init__ (sglang/srt/managers/scheduler.py:330)",
)
BARRIER = (
    "barrier (torch/distributed/distributed_c10d.py:4630)",
    "wrapper (torch/distributed/c10d_logger.py:81)",
    "load_model (sglang/srt/model_executor/model_runner.py:770)",
    "__init__ (sglang/srt/managers/scheduler.py:330)",
)
START_ROOT = stacks.ROOT[2:]


def scene(names: Sequence[str], calls: Calls, **others: Calls) -> dict[str, Calls]:
    """*names* in *calls*, but for *others*."""
    return {name: others.get(name, calls) for name in names}


def tp(many: int) -> list[str]:
    return [f"TP{number}" for number in range(many)]


def texts(
    *samples: Scene, title: str = "sglang::scheduler_{}", root: Calls = stacks.ROOT
) -> list[StackFile]:
    """A folder for each sample, in text."""
    return [
        StackFile(
            f"sample{at}/{rank.lower()}.txt",
            dump_text(title.format(rank), pid_of(rank), calls, root=root).encode(),
        )
        for at, sample in enumerate(samples, start=1)
        for rank, calls in sample.items()
    ]


def jsons(*samples: Scene) -> list[StackFile]:
    """All in one folder, as our own command names them."""
    return [
        StackFile(f"{rank}-{pid_of(rank)}-{at}.pyspy.json", dump_json(pid_of(rank), calls))
        for at, sample in enumerate(samples, start=1)
        for rank, calls in sample.items()
    ]


def one_text(sample: Scene) -> list[StackFile]:
    """Every rank in one file, as a shell loop writes it."""
    bodies = [
        dump_text(f"sglang::scheduler_{rank}", pid_of(rank), calls)
        for rank, calls in sample.items()
    ]
    return [StackFile("all.txt", "\n".join(bodies).encode())]


def nodes(sample: Scene, per_node: int) -> list[StackFile]:
    """A folder for each host, where the pids begin anew."""
    return [
        StackFile(
            f"node{at // per_node}/rank{at}.txt",
            dump_text(f"sglang::scheduler_{rank}", 900 + at % per_node, calls).encode(),
        )
        for at, (rank, calls) in enumerate(sample.items())
    ]


def failed(rank: str, said: str, *, out: str = "") -> list[StackFile]:
    """A rank that py-spy could not read."""
    name = rank.lower()
    return [
        StackFile(f"sample1/{name}.stdout.txt", out.encode()),
        StackFile(f"sample1/{name}.stderr.txt", said.encode()),
    ]


def sizes(**told: int) -> StackFile:
    return StackFile(
        "server_info.json", orjson.dumps({"tp_size": 1, "dp_size": 1, "pp_size": 1} | told)
    )


GONE = (
    "Error: Failed to get process executable name. Check that the process is running.\n\n"
    "Caused by:\n    0: No such file or directory (os error 2)\n"
)
DENIED = "Error: Permission Denied: Try running again with elevated permissions\n"
NO_TOOL = "/bin/sh: 1: py-spy: not found\n"
TORN_TP3 = StackFile(
    "answer.json",
    orjson.dumps(
        {
            "done": [
                {
                    "file": {"name": f"TP3-{pid_of('TP3')}-1.pyspy.json"},
                    "sample": 1,
                    "rank": "TP3",
                    "exact": False,
                    "mode": "nonblocking",
                }
            ],
            "refused": [],
        }
    ),
)
CHECKS, EVICTS, GPU = stacks.CHECKS_CACHE, stacks.EVICTS, stacks.AWAITS_GPU
REQUESTS = stacks.AWAITS_REQUESTS
DP_ATTENTION = [f"DP{n // 4}_TP{n}" for n in range(8)]
PIPELINE = [f"PP{n // 4}_TP{n % 4}" for n in range(8)]
REPLICAS = [f"DP{n // 4}_TP{n % 4}" for n in range(8)]
EXPERTS = [f"TP{n}_EP{n}" for n in range(8)]
ALL_AT_ONCE = [f"DP{n // 4}_PP{n // 2 % 2}_TP{n % 2}_EP{n % 2}" for n in range(8)]


def must_say(found: Comparison, verdict: str, outliers: Sequence[str], stuck: bool | None) -> None:
    assert (found.verdict, list(found.outliers), found.stuck) == (verdict, list(outliers), stuck)
    for rank in outliers:
        assert rank in found.says
