"""A claim: one sentence, how much stands behind it, and where that can be seen."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How much evidence is behind a claim."""

    ESTABLISHED = "established"  # follows from evidence in hand
    SUPPORTED = "supported"  # evidence fits; another reading is possible
    HYPOTHESIS = "hypothesis"  # no artifact yet; a test is named
    UNKNOWN = "unknown"  # looked at and still open


class Level(StrEnum):
    """How a claim is marked on a page: what is abnormal, what is only noted."""

    BAD = "bad"
    WARN = "warn"
    NOTE = "note"


class ProblemClass(StrEnum):
    """The six classes of an incident; an undecided one is None, never a seventh."""

    DOWN = "down/unhealthy"
    LATENCY = "latency/throughput"
    WRONG_OUTPUT = "wrong output"
    HANG = "hang/timeout"
    CRASH = "crash"
    REGRESSION = "commit regression"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in an artifact that a claim rests on."""

    artifact: str  # path inside the bundle ("loads_all_1.json") or artifact id
    at: str  # JSON pointer, line, series or frame
    value: Any = None  # what stood there; plain JSON

    def as_json(self) -> dict[str, Any]:
        return {"artifact": self.artifact, "at": self.at, "value": self.value}


@dataclass(frozen=True, slots=True)
class Claim:
    """What one rule says. ``id`` is the rule's, kebab-case, documented in docs/signals.md."""

    id: str
    says: str  # one sentence, with figures and their base
    status: Status
    evidence: tuple[Evidence, ...] = ()
    level: Level = Level.NOTE

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "says": self.says,
            "status": self.status.value,
            "level": self.level.value,
            "evidence": [item.as_json() for item in self.evidence],
        }
