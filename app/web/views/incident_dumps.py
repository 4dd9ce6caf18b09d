"""The dumps of an incident as its page lists them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class DumpLine:
    """One dump. *headline* is what it comes to once it was read, or how far reading is."""

    id: int
    name: str
    kind: str
    state: str
    level: str
    headline: str


@dataclass(frozen=True)
class IncidentDumps:
    """Some dumps, and the one to open next. *step* None: no crash dump is read."""

    lines: Sequence[DumpLine]
    total: int
    step: DumpLine | None
