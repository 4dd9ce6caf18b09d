"""The messages between console and agent: interface §4.

All text in them comes from a host and may be hostile: ``harmless`` spells out what no screen
should get, and it is escaped where it is shown, never interpreted. Lists, numbers and times have
bounds. What is None is not known. Times are UTC, durations in seconds, sizes in bytes.
"""

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from app.protocol.harmless import Count, Moment, Pid, Port, Seconds, Text

# "<pid>.<start in ticks>"; the kernel's pids have seven digits
ProcessId = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,8}\.[0-9]{1,20}$")]
ArtifactId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]

# Where a server was told to write its requests; nothing but request dumps is looked for there.
DumpFolder = Annotated[str, Field(pattern=r"^/[ -~]{1,299}$")]

MAX_DUMP_FOLDERS = 8  # of one request
MAX_PROCESSES = 256  # of one request, and of one server
MAX_SERVERS = 64
MAX_PORTS = 256
MAX_SAMPLES = 5
MAX_INTERVAL_SECONDS = 30.0


class Message(BaseModel):
    """Immutable; what a newer side adds is ignored by an older one."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    def changed(self, **changes: Any) -> Self:  # noqa: ANN401  (fields of any message)
        """A copy with *changes*, which are checked as in a new one."""
        return self.model_validate({**dict(self), **changes})


Item = TypeVar("Item")
Few = Annotated[list[Item], Field(max_length=256)]
Many = Annotated[list[Item], Field(max_length=20_000)]


def servers_cut(left_out: int) -> str | None:
    """That *left_out* servers are not told, in one sentence; None where all are."""
    if not left_out:
        return None
    more = (
        "1 more server runs here and is" if left_out == 1 else f"{left_out} more run here and are"
    )
    return f"{more} not told: {MAX_SERVERS} are at most, and the users of the host take turns."


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

    label: Text  # "TP0" where the title names none
    tp: Count | None = None
    pp: Count | None = None
    dp: Count | None = None
    ep: Count | None = None


class GpuUse(Message):
    index: Count
    name: Text | None = None
    used_bytes: Count | None = None  # by this process


class Process(Message):
    """One process of a server."""

    id: ProcessId
    pid: Pid  # as the agent sees it
    inner_pid: Pid | None = None  # in its own pid namespace, where that is another
    parent_pid: Pid | None = None
    title: Text  # printable, cut
    role: Role
    rank: Rank | None = None  # of schedulers and workers
    state: Text | None = None  # letter of /proc/PID/stat: R S D T t Z
    uid: Count | None = None
    started_at: Moment | None = None
    threads: Count | None = None
    wchan: Text | None = None  # where in the kernel its main thread sleeps
    traced_by: Pid | None = None  # pid of another debugger
    rss_bytes: Count | None = None
    own_pid_namespace: bool | None = None  # True: another than the agent's
    own_mount_namespace: bool | None = None
    container: Text | None = None  # short id, from its cgroup
    gpus: Many[GpuUse] | None = None
    doubts: Few[Text] = []  # why its title may lie; empty: nothing speaks against it


class Server(Message):
    """A serving process and its descendants."""

    id: ProcessId  # of the root
    engine: Literal["sglang", "vllm"]
    name: Text  # "sglang on port 30000"
    ports: Annotated[list[Port], Field(max_length=MAX_PORTS)] = []  # it listens on
    ports_known: bool = True  # False: there may be more; not all of its open files were read
    # The root first, then by role and rank.
    processes: Annotated[list[Process], Field(max_length=MAX_PROCESSES)]
    processes_left_out: Count = 0  # that fit no more
    started_at: Moment | None = None
    starting: bool = False  # some ranks have no title yet
    container: Text | None = None
    command_line: Text | None = None  # redacted


class Processes(Message):
    """``GET /agent/v1/processes``."""

    at: Moment
    servers: Annotated[list[Server], Field(max_length=MAX_SERVERS)]
    gpus: Text  # "absent: no NVIDIA driver here", "2 × H200", "no answer in 3 s"
    supported: bool = True  # False: not Linux, nothing can be said
    servers_left_out: Count = 0  # that run as well and fit no more

    @property
    def cut(self) -> str | None:
        """That not every server is told, in one sentence; None where all are."""
        return servers_cut(self.servers_left_out)


class Info(Message):
    """``GET /agent/v1/info``."""

    agent_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,64}$")]
    version: Text
    host: Text
    at: Moment  # by the clock of the host
    started_at: Moment
    boot_id: Text | None = None
    system: Text  # "Linux 6.1 x86_64"
    embedded: bool = False  # runs inside the console
    rss_bytes: Count | None = None  # of the agent itself, or of the console around it
    cpu_seconds: Seconds | None = None  # that it has taken since its start
    free_bytes: Count | None = None  # where it keeps what it took
    # "py-spy": "0.4.3"; None: not there.
    tools: Annotated[dict[Text, Text | None], Field(max_length=64)] = {}


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
    "clock",
]


class Check(Message):
    """Whether one thing can be captured right now, and the one fix where it cannot."""

    capability: Capability
    ready: bool | None  # None: it cannot be told without trying
    says: Text  # "py-spy 0.4.3, may trace it"
    fix: Text | None = None
    command: Text | None = None  # to be copied


class Readiness(Message):
    """What can be captured of one process, or of the host (*process_id* None)."""

    process_id: ProcessId | None = None
    title: Text
    checks: Few[Check]


class Loss(Message):
    """What one way to end a server would save and lose."""

    how: Literal["SIGTERM", "SIGQUIT", "SIGKILL"]
    saves: Few[Text]
    loses: Few[Text]
    unknown: Few[Text] = []
    command: Text  # to be copied; never sent by us


class RestartCard(Message):
    """If this server must be restarted."""

    server_id: ProcessId
    name: Text
    advice: Text
    losses: Few[Loss]


class Preflight(Message):
    """``GET /agent/v1/preflight``."""

    at: Moment
    host: Few[Check]
    processes: Many[Readiness]
    restarts: Few[RestartCard] = []
    # Ready of all that could be told.
    score: Annotated[float, Field(ge=0, le=1)] | None = None
    servers_left_out: Count = 0  # of which nothing was asked


# What was done -----------------------------------------------------------------------------


class Refusal(Message):
    """Why nothing was done to one process, and the one fix."""

    process_id: ProcessId | None = None
    rank: Text | None = None
    kind: Text  # of domain.pyspy_errors, or "busy", "gone", "restarted", "unknown process", …
    reason: Text
    fix: Text | None = None
    command: Text | None = None


class FileTaken(Message):
    """Something the agent holds: ``GET /agent/v1/artifacts/{id}`` gives its bytes."""

    id: ArtifactId
    name: Text
    kind: Text  # "stacks", "coredump", "log tail", "kernel log", "flight recorder", …
    size_bytes: Count
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    taken_at: Moment
    process_id: ProcessId | None = None
    tier: Literal["T0", "T1", "T2"] = "T1"
    redacted: Few[Text] = []


class StacksRequest(Message):
    """``POST /agent/v1/stacks``: all processes in the same moment, *samples* times."""

    process_ids: Annotated[list[ProcessId], Field(min_length=1, max_length=MAX_PROCESSES)]
    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] = 1
    interval_seconds: Annotated[float, Field(ge=0.5, le=MAX_INTERVAL_SECONDS)] = 5.0
    mode: Literal["plain", "native"] = "plain"
    first_sample: Annotated[int, Field(ge=1, le=99)] = 1  # the number of the first one
    not_before: Moment | None = None  # so that several hosts take theirs in the same second


Mode = Literal["plain", "nonblocking", "native", "native in its namespace"]


class StackSample(Message):
    """The stacks of one process at one moment."""

    process_id: ProcessId
    pid: Pid
    rank: Text | None
    sample: Count  # from 1
    taken_at: Moment
    seconds: Seconds
    mode: Mode
    exact: bool  # False: taken without a pause from a running process, may be torn
    state_before: Text | None
    state_after: Text | None
    threads: Count  # in it
    file: FileTaken  # py-spy's JSON
    notes: Few[Text] = []  # "native refused: …; taken plain"


class StacksAnswer(Message):
    matched: Few[ProcessId]
    done: Many[StackSample]
    refused: Many[Refusal]


class CoredumpRequest(Message):
    """``POST /agent/v1/coredumps``; *confirm* is the host's name, typed by a person."""

    process_id: ProcessId
    confirm: Text


CoredumpState = Literal[
    "sent", "growing", "complete", "truncated", "no-file", "timed-out", "refused"
]


class Coredump(Message):
    """``GET /agent/v1/coredumps/{id}``: a written byte is "sent", never "dumped"."""

    id: ArtifactId
    process_id: ProcessId
    rank: Text | None = None
    state: CoredumpState
    says: Text
    fix: Text | None = None
    command: Text | None = None
    found_by: Literal["descriptor", "template"] | None = None  # how the pipe was found
    path: Text | None = None  # of the file, on the host
    size_bytes: Count | None = None
    started_at: Moment
    changed_at: Moment
    file: FileTaken | None = None  # once complete or truncated for good
    notes: Few[Text] = []


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
    says: Text
    fix: Text | None = None
    started_at: Moment
    file: FileTaken | None = None


class Fact(Message):
    """One thing read from the host."""

    topic: Text  # "memory", "pressure", "kernel log", "disk", "clock", "process", "cgroup", "gpu"
    says: Text  # one sentence
    level: Literal["good", "quiet", "warn", "bad", "unknown"] = "quiet"
    source: Text  # "/proc/pressure/memory"


class HostFacts(Message):
    """``GET /agent/v1/facts``: facts, and the files behind them."""

    at: Moment
    facts: Many[Fact]
    files: Few[FileTaken] = []
    refused: Many[Refusal] = []


class RasAnswer(Message):
    """``GET /agent/v1/ras``: NCCL's own view, read twice."""

    at: Moment
    readings: Few[FileTaken]
    says: Text
    refused: Many[Refusal] = []


class DumpFound(Message):
    """A crash or request dump that a server wrote."""

    file: FileTaken | None = None  # None until fetched or when it is too large to be copied
    id: ArtifactId  # to fetch it by
    path: Text
    size_bytes: Count
    changed_at: Moment
    server_id: ProcessId | None = None
    growing: bool = False


class Dumps(Message):
    """``GET /agent/v1/dumps``."""

    at: Moment
    dumps: Many[DumpFound]
    looked_in: Many[Text]
    refused: Many[Refusal] = []
