"""The messages between console and agent: interface §4.

All text in them comes from a host and may be hostile: it is escaped where it is shown, never
interpreted. What is None is not known. Times are UTC, durations in seconds, sizes in bytes.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

ProcessId = Annotated[str, Field(pattern=r"^[1-9]\d{0,9}\.\d{1,20}$")]  # "<pid>.<start in ticks>"
ArtifactId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]

MAX_PROCESSES = 256  # of one request
MAX_SAMPLES = 5
MAX_INTERVAL_SECONDS = 30.0


class Message(BaseModel):
    """Immutable; what a newer side adds is ignored by an older one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# What runs there ----------------------------------------------------------------------------

Role = Literal[
    "server",  # the root: HTTP frontend, and tokenizer manager in SGLang
    "scheduler",  # one rank of SGLang
    "worker",  # one rank of vLLM
    "detokenizer",
    "dp controller",
    "tokenizer worker",
    "router",
    "starting",  # a child of a server that has no title of its own yet
    "other",
]


class Rank(Message):
    """Where a process stands in its groups; *label* is how logs and titles name it: "DP1_TP3"."""

    label: str  # "TP0" where the title names none
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None


class GpuUse(Message):
    index: int
    name: str | None = None
    used_bytes: int | None = None  # by this process


class Process(Message):
    """One process of a server."""

    id: ProcessId
    pid: int  # as the agent sees it
    inner_pid: int | None = None  # in its own pid namespace, where that is another
    parent_pid: int | None = None
    title: str  # printable, cut
    role: Role
    rank: Rank | None = None  # of schedulers and workers
    state: str | None = None  # letter of /proc/PID/stat: R S D T t Z
    uid: int | None = None
    started_at: datetime | None = None
    threads: int | None = None
    wchan: str | None = None  # where in the kernel its main thread sleeps
    traced_by: int | None = None  # pid of another debugger
    rss_bytes: int | None = None
    own_pid_namespace: bool | None = None  # True: another than the agent's
    own_mount_namespace: bool | None = None
    container: str | None = None  # short id, from its cgroup
    gpus: list[GpuUse] | None = None
    doubts: list[str] = []  # why its title may lie; empty: nothing speaks against it


class Server(Message):
    """A serving process and its descendants."""

    id: ProcessId  # of the root
    engine: Literal["sglang", "vllm"]
    name: str  # "sglang on port 30000"
    ports: list[int] = []  # it listens on
    processes: list[Process]  # the root first, then by role and rank
    started_at: datetime | None = None
    starting: bool = False  # some ranks have no title yet
    container: str | None = None
    command_line: str | None = None  # redacted


class Processes(Message):
    """``GET /agent/v1/processes``."""

    at: datetime
    servers: list[Server]
    gpus: str  # "absent: no NVIDIA driver here", "2 × H200", "no answer in 3 s"
    supported: bool = True  # False: not Linux, nothing can be said


class Info(Message):
    """``GET /agent/v1/info``."""

    agent_id: str
    version: str
    host: str
    at: datetime  # by the clock of the host
    started_at: datetime
    boot_id: str | None = None
    system: str  # "Linux 6.1 x86_64"
    embedded: bool = False  # runs inside the console
    free_bytes: int | None = None  # where it keeps what it took
    tools: dict[str, str | None] = {}  # "py-spy": "0.4.3"; None: not there


# What can be captured ----------------------------------------------------------------------

Capability = Literal[
    "stacks",
    "native stacks",
    "coredump",
    "cpu profile",
    "nccl ras",
    "flight recorder",
    "host facts",
    "server log",
    "crash dump",
    "grace period",
    "free space",
]


class Check(Message):
    """Whether one thing can be captured right now, and the one fix where it cannot."""

    capability: Capability
    ready: bool | None  # None: it cannot be told without trying
    says: str  # "py-spy 0.4.3, may trace it"
    fix: str | None = None
    command: str | None = None  # to be copied


class Readiness(Message):
    """What can be captured of one process, or of the host (*process_id* None)."""

    process_id: ProcessId | None = None
    title: str
    checks: list[Check]


class Loss(Message):
    """What one way to end a server would save and lose."""

    how: Literal["SIGTERM", "SIGQUIT", "SIGKILL"]
    saves: list[str]
    loses: list[str]
    unknown: list[str] = []
    command: str  # to be copied; never sent by us


class RestartCard(Message):
    """If this server must be restarted."""

    server_id: ProcessId
    name: str
    advice: str
    losses: list[Loss]


class Preflight(Message):
    """``GET /agent/v1/preflight``."""

    at: datetime
    host: list[Check]
    processes: list[Readiness]
    restarts: list[RestartCard] = []
    score: float | None = None  # ready of all that could be told, 0 to 1


# What was done -----------------------------------------------------------------------------


class Refusal(Message):
    """Why nothing was done to one process, and the one fix."""

    process_id: ProcessId | None = None
    rank: str | None = None
    kind: str  # of domain.pyspy_errors, or "busy", "gone", "restarted", "unknown process", …
    reason: str
    fix: str | None = None
    command: str | None = None


class FileTaken(Message):
    """Something the agent holds: ``GET /agent/v1/artifacts/{id}`` gives its bytes."""

    id: ArtifactId
    name: str
    kind: str  # "stacks", "coredump", "log tail", "kernel log", "flight recorder", …
    size_bytes: int
    sha256: str
    taken_at: datetime
    process_id: ProcessId | None = None
    tier: Literal["T0", "T1", "T2"] = "T1"
    redacted: list[str] = []


class StacksRequest(Message):
    """``POST /agent/v1/stacks``: all processes in the same moment, *samples* times."""

    process_ids: Annotated[list[ProcessId], Field(min_length=1, max_length=MAX_PROCESSES)]
    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] = 1
    interval_seconds: Annotated[float, Field(ge=0.5, le=MAX_INTERVAL_SECONDS)] = 5.0
    mode: Literal["plain", "native"] = "plain"
    first_sample: Annotated[int, Field(ge=1, le=99)] = 1  # the number of the first one
    not_before: datetime | None = None  # so that several hosts take theirs in the same second


Mode = Literal["plain", "nonblocking", "native", "native in its namespace"]


class StackSample(Message):
    """The stacks of one process at one moment."""

    process_id: ProcessId
    pid: int
    rank: str | None
    sample: int  # from 1
    taken_at: datetime
    seconds: float
    mode: Mode
    exact: bool  # False: taken without a pause from a running process, may be torn
    state_before: str | None
    state_after: str | None
    threads: int  # in it
    file: FileTaken  # py-spy's JSON
    notes: list[str] = []  # "native refused: …; taken plain"


class StacksAnswer(Message):
    matched: list[ProcessId]
    done: list[StackSample]
    refused: list[Refusal]


class CoredumpRequest(Message):
    """``POST /agent/v1/coredumps``; *confirm* is the host's name, typed by a person."""

    process_id: ProcessId
    confirm: str


CoredumpState = Literal[
    "sent", "growing", "complete", "truncated", "no-file", "timed-out", "refused"
]


class Coredump(Message):
    """``GET /agent/v1/coredumps/{id}``: a written byte is "sent", never "dumped"."""

    id: ArtifactId
    process_id: ProcessId
    rank: str | None = None
    state: CoredumpState
    says: str
    fix: str | None = None
    command: str | None = None
    found_by: Literal["descriptor", "template"] | None = None  # how the pipe was found
    path: str | None = None  # of the file, on the host
    size_bytes: int | None = None
    started_at: datetime
    changed_at: datetime
    file: FileTaken | None = None  # once complete or truncated for good
    notes: list[str] = []


class ProfileRequest(Message):
    """``POST /agent/v1/profiles``: py-spy record, idle threads included, speedscope."""

    process_id: ProcessId
    seconds: Annotated[int, Field(ge=1, le=60)] = 10
    rate: Annotated[int, Field(ge=1, le=20)] = 10


class Profile(Message):
    """``GET /agent/v1/profiles/{id}``."""

    id: ArtifactId
    process_id: ProcessId
    state: Literal["running", "complete", "refused"]
    says: str
    fix: str | None = None
    started_at: datetime
    file: FileTaken | None = None


class Fact(Message):
    """One thing read from the host."""

    topic: str  # "memory", "pressure", "kernel log", "disk", "clock", "process", "cgroup", "gpu"
    says: str  # one sentence
    level: Literal["good", "quiet", "warn", "bad", "unknown"] = "quiet"
    source: str  # "/proc/pressure/memory"


class HostFacts(Message):
    """``GET /agent/v1/facts``: facts, and the files behind them."""

    at: datetime
    facts: list[Fact]
    files: list[FileTaken] = []
    refused: list[Refusal] = []


class RasAnswer(Message):
    """``GET /agent/v1/ras``: NCCL's own view, read twice."""

    at: datetime
    readings: list[FileTaken]
    says: str
    refused: list[Refusal] = []


class DumpFound(Message):
    """A crash or request dump that a server wrote."""

    file: FileTaken | None = None  # None until fetched or when it is too large to be copied
    id: ArtifactId  # to fetch it by
    path: str
    size_bytes: int
    changed_at: datetime
    server_id: ProcessId | None = None
    growing: bool = False


class Dumps(Message):
    """``GET /agent/v1/dumps``."""

    at: datetime
    dumps: list[DumpFound]
    looked_in: list[str]
    refused: list[Refusal] = []
