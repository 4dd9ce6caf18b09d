"""What a diagnostic brought: of whom, from where, and why not."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from app.protocol.messages import Fact, Message
from app.store.tables import Artifact, Diagnostic, DiagnosticItem
from app.web.views.artifacts import is_profile
from app.web.views.coredump_card import Cards, DumpsKept
from app.web.views.ranks import RanksTold
from app.web.views.ras import RasKept
from app.web.views.same_faults import SameFaultsTold
from app.web.views.stacks import Column

STACKS = ("stacks", "native stacks")
GROWING = ("asked", "sent", "growing")  # coredumps that may still become whole
_DIGITS = re.compile(r"([0-9]{1,9})")
_COREDUMP_LEVELS = {
    "asked": "unknown",
    "sent": "unknown",
    "growing": "unknown",
    "complete": "good",
    "truncated": "bad",
    "no-file": "bad",
    "timed-out": "bad",
    "refused": "bad",
}


def in_order(rank: str) -> tuple[tuple[int, str], ...]:
    """A key that puts TP2 before TP10."""
    parts = _DIGITS.split(rank)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def who(item: DiagnosticItem) -> str:
    """``TP0``; the pid or the host where it has no rank."""
    return item.rank or (f"pid {item.pid}" if item.pid else item.process_id or item.host_name)


def process_of(item: DiagnosticItem) -> tuple[str, str]:
    """Equal for equal processes."""
    return item.host_name, item.process_id or who(item)


@dataclass(frozen=True)
class Refused:
    """One reason why nothing was taken, of one process or several."""

    who: str
    says: str
    fix: str | None
    command: str | None


def refusals(items: Sequence[DiagnosticItem]) -> list[Refused]:
    """Equal reasons once, with all whom they concern."""
    alike: dict[tuple[str, str | None, str | None], list[str]] = {}
    for item in items:
        if item.state == "refused":
            names = alike.setdefault((item.says, item.fix, item.command), [])
            if who(item) not in names:
                names.append(who(item))
    return [Refused(", ".join(sorted(names, key=in_order)), *key) for key, names in alike.items()]


@dataclass(frozen=True)
class Dump:
    """A coredump as it is: a written byte is "sent", never "dumped"."""

    who: str
    item: DiagnosticItem

    @property
    def level(self) -> str:
        return _COREDUMP_LEVELS.get(self.item.state, "unknown")

    @property
    def size_bytes(self) -> int | None:
        told = self.item.detail.get("size_bytes")
        return told if isinstance(told, int) else None

    @property
    def path(self) -> str | None:
        """On the host; what is on another machine is named, never opened."""
        told = self.item.detail.get("path")
        return str(told) if told else None

    @property
    def notes(self) -> list[str]:
        told = self.item.detail.get("notes")
        return [str(note) for note in told][:5] if isinstance(told, list) else []


@dataclass(frozen=True)
class Taken:
    """One thing that is not a stack: a file, and what was said of it."""

    who: str
    item: DiagnosticItem
    artifact: Artifact | None

    @property
    def is_profile(self) -> bool:
        """Whether it can be opened as a flame graph."""
        return self.artifact is not None and is_profile(self.artifact)


@dataclass(frozen=True)
class ToldByHost:
    """What is of no single process: facts that were read, or what NCCL says of the job."""

    name: str
    at: datetime | None
    says: str
    facts: Sequence[Fact]


class _HostAnswer(Message):
    name: str
    at: datetime | None = None
    says: str = ""
    facts: tuple[Fact, ...] = ()


_ANSWER = TypeAdapter(list[_HostAnswer])


def told_by_hosts(row: Diagnostic) -> list[ToldByHost]:
    """What hosts answered as a whole; none where it is not of the shape that is known here."""
    try:
        hosts = _ANSWER.validate_python((row.answer or {}).get("hosts") or [])
    except ValidationError:
        return []
    return [ToldByHost(one.name, one.at, one.says, one.facts) for one in hosts]


@dataclass(frozen=True)
class RankPage:
    """A link to a part of the ranks, where there are too many for one page."""

    number: int
    says: str  # "TP0 to TP31"


@dataclass(frozen=True)
class Found:
    """What a diagnostic brought, as far as it has come."""

    columns: Sequence[Column]
    first_column: int  # its number among all ranks, from 1
    samples: Sequence[int]
    sample: int | None  # the one that is shown
    rank_pages: Sequence[RankPage]
    rank_page: int
    asks: Mapping[str, str | int]  # the query of what was chosen and is kept to: sample, shape, …
    dumps: Sequence[Dump]
    taken: Sequence[Taken]
    told: Sequence[ToldByHost]
    refused: Sequence[Refused]
    asked: int  # processes or hosts that were asked
    compared: RanksTold | None  # what the stacks of all ranks say together
    cards: Cards  # what was read of coredumps
    dumps_compared: DumpsKept | None
    ras: RasKept | None  # what NCCL counts
    same_faults: SameFaultsTold
