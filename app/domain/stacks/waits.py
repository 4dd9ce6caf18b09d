"""What the newest calls of a thread wait for: a collective, the GPU, a lock, another process.

Names of native calls: NCCL, Gloo and c10d of torch, the CUDA driver and runtime, libzmq, glibc
and CPython. Without ``--native`` the last Python call tells, as C calls are invisible then.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from app.domain.stacks.dump import Frame
from app.domain.stacks.frames import base_name, coarse_key, last_name, leading_native, python_frames

Kind = Literal[
    "collective",
    "GPU event",
    "GPU sync",
    "GPU call",
    "IPC receive",
    "lock",
    "socket",
    "pipe",
    "poll",
    "sleep",
    "child process",
    "garbage collection",
    "GIL wait",
    "import",
    "Python code",
    "C code",
    "unknown",
]
FOR_PEERS = frozenset(("collective", "GPU event", "GPU sync"))  # what a rank waits in for others
BLOCKED = FOR_PEERS | {"IPC receive", "lock", "socket", "pipe", "poll", "sleep", "child process"}
POINT_TO_POINT = frozenset(("send", "recv", "isend", "irecv", "batch_isend_irecv"))

_SITE_FRAMES = 3  # calls that make two waits for the same operation the same wait
_OPERATIONS = re.compile(
    r"_?(all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|monitored_barrier|barrier|reduce"
    r"|gather|scatter|i?send|i?recv|batch_isend_irecv)"
    r"(_(into_tensor|single|object|object_list|tensor|tensor_dict|base|coalesced|obj|in_place"
    r"|out_place|inplace|outplace|v))*"
)
_COMMUNICATION = re.compile(
    r"distributed_c10d|pynccl|parallel_state|communication_op|communicator|custom_all_reduce"
    r"|all_?reduce|functional_collectives|pymscclpp|triton_symm_mem|symm_mem|hpu_|npu_|xpu_"
    r"|flashinfer_comm"
)
_COMMUNICATES = re.compile(r"(^|/)(deep_ep|flashinfer/comm|_symmetric_memory|mori)/")
# What libraries of their own call it, where torch's names are not used.
_OTHER_NAMES = (
    (re.compile(r"(trtllm|flashinfer|mnnvl)\w*_all_?reduce\w*"), "all_reduce"),
    (re.compile(r"(low_latency_|internode_|intranode_)?dispatch"), "dispatch"),  # of experts
    (re.compile(r"(low_latency_|internode_|intranode_)?combine"), "combine"),
)
_BETWEEN = frozenset(("_ops.py", "_classes.py", "_library.py", "custom_ops.py"))
_NATIVE_NAMES: tuple[tuple[str, Kind], ...] = (
    (
        r"gc_collect|deduce_unreachable|visit_decref|subtract_refs|_PyGC|collect_gen",
        "garbage collection",
    ),
    (
        r"^p?nccl[A-Z]|^nccl\w*Kernel|c10d::|^gloo::|ProcessGroup(NCCL|Gloo)|mscclpp",
        "collective",
    ),
    (r"^(cu(da)?|hip)EventSynchronize", "GPU event"),
    (
        r"^(cu(da)?|hip)((Stream|Device|Ctx|Context)Synchronize|Memcpy(?!\w*Async))",
        "GPU sync",
    ),
    (r"^cu[A-Z]\w+|^cuda[A-Z]\w+|^hip[A-Z]\w+", "GPU call"),
    (r"^zmq_|^zmq::", "IPC receive"),
    (r"take_gil|PyEval_(Restore|Acquire)Thread", "GIL wait"),
    (r"nanosleep|time_sleep|^usleep", "sleep"),
    (r"epoll_wait|epoll_pwait|select_epoll|^p?poll$|^__poll|^p?select$", "poll"),
    (r"^recv(from|msg|mmsg)?$|^accept4?$|sock_recv|^SSL_read|sock_accept", "socket"),
    (r"^_*read$|os_read", "pipe"),
    (r"^wait(pid|4|id)$|os_waitpid", "child process"),
    (
        r"acquire_lock|sem_(timed)?wait|pthread_(mutex|cond|rwlock)|futex|condition_variable|lll_lock",
        "lock",
    ),
)
_NATIVE = [(re.compile(pattern), kind) for pattern, kind in _NATIVE_NAMES]
_NCCL_OPERATION = re.compile(
    r"nccl(?:DevKernel_)?(AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|Reduce|Send|Recv)"
)


@dataclass(frozen=True, slots=True)
class Wait:
    """What a thread waits for. *site*: the calls that ask for it, newest first."""

    kind: Kind
    operation: str | None = None  # of a collective: "all_reduce"; None: not told
    site: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """``all_reduce``, ``GPU event``: as a table shows it."""
        return self.operation or self.kind


@lru_cache(maxsize=1_024)
def wait_of(frames: tuple[Frame, ...], active: bool | None, gil: str | None) -> Wait:  # noqa: FBT001
    """What *frames*, newest first, wait for; *gil*: who owns it: "self", "other", None."""
    native = list(leading_native(frames))
    found = _native_kind(native)
    python = list(islice(python_frames(frames), 12))
    operation, site = _collective(python)
    if found == "garbage collection":
        return Wait(found)
    if operation:
        return Wait("collective", operation, site)
    if found == "collective":
        return Wait("collective", _nccl_operation(native), site)
    if found in ("GPU event", "GPU sync"):
        return Wait(found, None, site)
    kind = _python_kind(python) if found in (None, "lock", "poll", "socket") else None
    return Wait(kind or found or _by_activity(active, gil, native), None, site)


def _native_kind(names: Sequence[str]) -> Kind | None:
    for pattern, kind in _NATIVE:
        if any(pattern.search(name) for name in names):
            return kind
    return None


def _nccl_operation(names: Sequence[str]) -> str | None:
    for name in names:
        if found := _NCCL_OPERATION.search(name):
            return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found[1]).lower()
    return None


def _collective(python: Sequence[Frame]) -> tuple[str | None, tuple[str, ...]]:
    """The operation that the newest calls are in, and the calls that ask for it."""
    operation = None
    for at, frame in enumerate(python):
        name, file = last_name(frame.function), base_name(frame.file)
        if _COMMUNICATION.search(file) or _COMMUNICATES.search(frame.file):
            operation = operation or _operation(name)
        elif file not in _BETWEEN:
            return operation, tuple(map(coarse_key, python[at : at + _SITE_FRAMES]))
    return operation, ()


def _operation(name: str) -> str | None:
    if known := _OPERATIONS.fullmatch(name):
        return known[0].lstrip("_")
    return next((told for pattern, told in _OTHER_NAMES if pattern.fullmatch(name)), None)


def _python_kind(python: Sequence[Frame]) -> Kind | None:
    if not python:
        return None
    top, file = last_name(python[0].function), base_name(python[0].file)
    if gc := _collects_garbage(python[:2]):
        return gc
    if "cuda/" in python[0].file or file == "streams.py":
        return _gpu_kind(python[0].function, file)
    if (
        "zmq/" in python[0].file
        or (top, file) in _RECEIVES
        or top in ("recv_pyobj", "wait_request")
    ):
        return "IPC receive"
    if "<frozen importlib" in python[0].file or top == "_find_and_load":
        return "import"
    return _STANDARD.get((top, file)) or _STANDARD.get(("*", file))


def _collects_garbage(newest: Sequence[Frame]) -> Kind | None:
    for frame in newest:
        if re.search(r"(^|_)gc(_|$)|freeze_gc", last_name(frame.function)) or frame.file == "gc.py":
            return "garbage collection"
    return None


def _gpu_kind(function: str, file: str) -> Kind | None:
    if (last_name(function), file) == ("replay", "graphs.py"):
        return "GPU call"
    if last_name(function) not in ("synchronize", "wait", "query", "wait_event", "wait_stream"):
        return None
    return "GPU sync" if file == "__init__.py" or function.startswith("Stream.") else "GPU event"


_RECEIVES = frozenset(
    (
        ("acquire_read", "shm_broadcast.py"),
        ("dequeue", "shm_broadcast.py"),
        ("_recv", "connection.py"),
        ("recv_bytes", "connection.py"),
        ("_recv_bytes", "connection.py"),
        ("recv", "connection.py"),
        ("poll", "connection.py"),
    )
)
_STANDARD: dict[tuple[str, str], Kind] = {
    ("wait", "threading.py"): "lock",
    ("acquire", "threading.py"): "lock",
    ("_wait_for_tstate_lock", "threading.py"): "lock",
    ("join", "threading.py"): "lock",
    ("get", "queue.py"): "lock",
    ("put", "queue.py"): "lock",
    ("result", "_base.py"): "lock",
    ("flock", "load_snapshot.py"): "lock",
    ("maybe_sleep", "idle_sleeper.py"): "poll",
    ("select", "selectors.py"): "poll",
    ("*", "ssl.py"): "socket",
    ("readinto", "socket.py"): "socket",
    ("accept", "socket.py"): "socket",
    ("create_connection", "socket.py"): "socket",
    ("wait", "subprocess.py"): "child process",
    ("_wait", "subprocess.py"): "child process",
    ("communicate", "subprocess.py"): "child process",
}


def _by_activity(active: bool | None, gil: str | None, native: Sequence[str]) -> Kind:  # noqa: FBT001
    """No name tells: what py-spy says of the thread does, as far as it goes."""
    if gil == "self":
        return "Python code" if not native else "C code"
    if gil == "other" and not native:
        return "GIL wait"
    if active:
        return "C code" if native else "Python code"
    return "unknown"
