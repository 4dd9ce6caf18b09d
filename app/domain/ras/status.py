"""What one answer of NCCL's RAS holds, whichever way it was written down.

NCCL counts collectives as they are launched, by kind since 2.26, and leaves out sends, receives,
and what was captured in a CUDA graph. Its pids are those inside the container, its hosts are
addresses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Form = Literal["json", "text"]
MOST_RANKS = 65_536  # of one communicator
MOST_WORDS = 120  # characters of a name that NCCL tells

# Values of ncclResult_t that a rank can report; 0 is success, 7 in progress.
ERRORS = {
    1: "Unhandled CUDA error",
    2: "System error",
    3: "Internal error",
    4: "Invalid argument",
    5: "Invalid usage",
    6: "Remote process error",
}
IN_PROGRESS = 7


@dataclass(frozen=True, slots=True)
class Whose:
    """The process behind a rank. None: not told. *pid* is that in its own namespace."""

    host: str | None = None
    pid: int | None = None
    cuda_device: int | None = None
    nvml_device: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A rank that answered. *counts* by kind of collective, as far as they are told."""

    rank: int
    whose: Whose
    counts: Mapping[str, int]
    state: str | None = None  # INIT, RUNNING, FINALIZE, ABORT
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """A rank that NCCL has no data of. *silent*: it did not answer. None: not told."""

    rank: int
    whose: Whose
    silent: bool | None = None
    dead: bool | None = None


@dataclass(frozen=True, slots=True)
class Communicator:
    """Ranks that act together. *spread*: kind → count → how many ranks have it.

    Text names only communicators with something amiss, only the kinds whose counts differ, and
    only the ranks of small groups: there *size* may be None, and *members* are not all.
    """

    id: str
    size: int | None
    members: tuple[Member, ...]
    absent: tuple[Absent, ...]
    spread: Mapping[str, Mapping[int, int]]

    @property
    def short(self) -> str:
        """The first part of its hash, as a person copies it."""
        return self.id.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the text's table: *many* communicators that look alike."""

    many: int
    size: int
    status: str
    problems: str


@dataclass(frozen=True, slots=True)
class Status:
    """One answer. *whole* False: it ends in the middle, and what is here is not all."""

    form: Form
    version: str | None
    whole: bool
    communicators: tuple[Communicator, ...]
    rows: tuple[Row, ...] = ()  # of text alone
    dead: tuple[Whose, ...] = ()  # processes that NCCL gave up
    silent: tuple[Whose, ...] = ()  # processes that did not answer
    dead_count: int = 0  # those that are not named included
    silent_count: int = 0
    timeouts: int = 0
    written_at: str | None = None  # by the clock of its host, without a zone

    @property
    def many(self) -> int:
        """How many communicators it speaks of, those without a name included."""
        return max(len(self.communicators), sum(row.many for row in self.rows))


@dataclass(slots=True)
class Tally:
    """Counts of one kind, gathered into a spread."""

    of: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, kind: str, count: int, ranks: int = 1) -> None:
        """*ranks* more that have *count*."""
        counts = self.of.setdefault(kind, {})
        counts[count] = counts.get(count, 0) + ranks


def spread_of(members: Sequence[Member]) -> Mapping[str, Mapping[int, int]]:
    """The spread where every member tells its counts."""
    tally = Tally()
    for member in members:
        for kind, count in member.counts.items():
            tally.add(kind, count)
    return tally.of
