"""What the comparison is made of: samples of ranks, and ranks that none was read of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.stacks.dump import Dump
from app.domain.titles import RankNumbers

ENDED = frozenset("ZX")
HELD_STILL = frozenset("TtDZX")  # letters of /proc/PID/stat: nothing of it runs


@dataclass(frozen=True, slots=True)
class Sample:
    """The stacks of one rank at one moment."""

    rank: str  # as logs and titles name it: "DP1_TP3"
    pid: int | None
    number: int  # from 1, among the samples of this rank
    dump: Dump
    path: str
    numbers: RankNumbers | None = None
    taken_at: datetime | None = None
    exact: bool | None = None  # False: in motion, may be torn. None: not told


@dataclass(frozen=True, slots=True)
class Missing:
    """A rank that should be there and has no stacks, with the one fix.

    *partial*: some calls were read, but not all, so they are shown and not compared.
    """

    rank: str
    kind: str  # of domain.pyspy_errors, "not tried", "cut short", "no frames", …
    reason: str
    fix: str | None = None
    command: str | None = None
    pid: int | None = None
    partial: bool = False
    numbers: RankNumbers | None = None


@dataclass(frozen=True, slots=True)
class ProcessRead:
    """A process that was met in the files, a rank or not."""

    rank: str | None
    pid: int | None
    title: str | None
    role: str | None
    numbers: RankNumbers | None
    threads: int
    unnamed_threads: int
    threads_without_frames: int
    samples: int


@dataclass(frozen=True, slots=True)
class FailedRead:
    """What py-spy said instead of stacks, in one file."""

    file: str
    kind: str
    reason: str
    fix: str | None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that files of stacks hold.

    *states*: rank → letter of the process state, where the files tell. *expected*: how many
    ranks the server has, None where nothing tells.
    """

    samples: tuple[Sample, ...]
    missing: tuple[Missing, ...]
    states: Mapping[str, str]
    processes: tuple[ProcessRead, ...]
    failures: tuple[FailedRead, ...]
    unrecognised: tuple[str, ...]
    expected: int | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing in the files has to do with stacks."""
        return not (self.samples or self.missing or self.processes or self.failures)
