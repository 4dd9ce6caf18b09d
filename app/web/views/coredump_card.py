"""What was read of coredumps: a card for each, and what the dumps of all ranks say together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import escape
from pydantic import Field, ValidationError

from app.protocol.messages import Message
from app.store.tables import DiagnosticItem

MOST_ROWS = 8  # of each table; the rest is in the document
MOST_CARDS = 24
CARDS_BYTES = 60_000  # of HTML for tables and commands; cards beyond that have their note only
ROW_BYTES = 700  # of the markup of a row with names that are cut
LONGEST_COMMAND = 600  # a longer one would not be whole, so it is left out


class DeviceKept(Message):
    """One GPU of the process."""

    index: int
    name: str = ""
    arch: str = ""
    sms: int | None = None
    sms_with_work: int | None = None


class KernelKept(Message):
    """Grids of one kernel and shape on one GPU."""

    name: str
    short_name: str | None = None
    device: int
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    count: int | None = None
    sms: tuple[int, ...] = ()
    warps: int | None = None


class ExceptionKept(Message):
    """One exception. *pc* None: not told."""

    code: int | str
    name: str = ""
    says: str = ""
    device: int | None = None
    sm: int | None = None
    pc: str | None = None
    pc_exact: bool | None = None
    kernel: str | None = None
    function: str | None = None


class InspectedKept(Message):
    """The document of ``coredump inspect --json``. Not *complete*: *note* tells why."""

    complete: bool
    note: str = ""
    fingerprint: str | None = None
    devices: tuple[DeviceKept, ...] = ()
    kernels: tuple[KernelKept, ...] = ()
    kernels_total: int = 0
    exceptions: tuple[ExceptionKept, ...] = ()
    exceptions_total: int = 0
    commands: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class PlaceKept(Message):
    """Ranks whose GPUs are in the same place."""

    ranks: tuple[str, ...]
    place: str = ""
    waits: bool = False
    faulted: bool = False


class DumpsKept(Message):
    """What the dumps of several ranks say together; *missing* has each rank without one."""

    says: str
    groups: tuple[PlaceKept, ...] = ()
    missing: dict[str, str] = Field(default_factory=dict)
    taken_by: dict[str, int] = Field(default_factory=dict)  # rank → diagnostic

    def earlier(self, diagnostic_id: int) -> dict[int, list[str]]:
        """Ranks whose dumps another diagnostic took, by its number."""
        found: dict[int, list[str]] = {}
        for rank, number in self.taken_by.items():
            if number != diagnostic_id:
                found.setdefault(number, []).append(rank)
        return found


@dataclass(frozen=True)
class Card:
    """What one dump holds. *brief*: too many for one page, so only its note is shown."""

    who: str
    number: int
    artifact_id: int | None
    read: InspectedKept
    brief: bool

    @property
    def devices(self) -> Sequence[DeviceKept]:
        return self.read.devices[:MOST_ROWS]

    @property
    def kernels(self) -> Sequence[KernelKept]:
        return self.read.kernels[:MOST_ROWS]

    @property
    def exceptions(self) -> Sequence[ExceptionKept]:
        return self.read.exceptions[:MOST_ROWS]

    @property
    def commands(self) -> Sequence[str]:
        """Those that can be shown whole, as they are for copying."""
        whole = [one for one in self.read.commands if len(escape(one)) <= LONGEST_COMMAND]
        return whole[:MOST_ROWS]

    @property
    def html_bytes(self) -> int:
        """About how much of the page its tables and commands take."""
        rows = len(self.devices) + len(self.kernels) + len(self.exceptions)
        return ROW_BYTES * (rows + 1) + sum(300 + 2 * len(escape(one)) for one in self.commands)

    @property
    def kernels_left_out(self) -> int:
        return max(self.read.kernels_total, len(self.read.kernels)) - len(self.kernels)

    @property
    def exceptions_left_out(self) -> int:
        known = max(self.read.exceptions_total, len(self.read.exceptions))
        return known - len(self.exceptions)


@dataclass(frozen=True)
class Cards:
    """Those that are shown; *left_out* others were read as well."""

    shown: Sequence[Card] = ()
    left_out: int = 0


def inspected_in(item: DiagnosticItem) -> InspectedKept | None:
    """What was read of the dump of *item*; None where nothing was, or in an unknown shape."""
    kept = item.detail.get("inspected")
    try:
        return InspectedKept.model_validate(kept) if kept else None
    except ValidationError:
        return None


def cards(dumps: Sequence[tuple[str, DiagnosticItem]]) -> Cards:
    """A card for each dump that was looked into, given with whose it is."""
    read = [(who, item, one) for who, item in dumps if (one := inspected_in(item))]
    room, told = CARDS_BYTES, []
    for number, (who, item, one) in enumerate(read, start=1):
        card = Card(who, number, item.artifact_id, one, brief=False)
        room -= card.html_bytes
        told.append(card if room >= 0 else replace(card, brief=True))
    return Cards(told[:MOST_CARDS], len(told[MOST_CARDS:]))


def dumps_in(answer: dict[str, Any] | None) -> DumpsKept | None:
    """What the dumps of a diagnostic say together; None where they were not compared."""
    kept = (answer or {}).get("coredumps")
    try:
        return DumpsKept.model_validate(kept) if kept else None
    except ValidationError:
        return None
