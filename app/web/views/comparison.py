"""The comparison of ranks as a diagnostic keeps it: the document of ``stacks compare --json``."""

from typing import Any

from pydantic import Field, ValidationError

from app.protocol.messages import Message

LONGEST_TITLE = 240  # characters


class GroupKept(Message):
    """Ranks that do the same thing; *frames* of the first of them, newest first."""

    ranks: tuple[str, ...]
    top: str | None = None
    where: str | None = None
    primitive: str = "unknown"
    operation: str | None = None
    asked_by: tuple[str, ...] = ()
    moved: bool | None = None
    frames: tuple[str, ...] = ()


class MissingKept(Message):
    """A rank that was not read, and the one fix."""

    rank: str
    reason: str = ""
    fix: str | None = None
    command: str | None = None
    partial: bool = False


class BranchKept(Message):
    """Ranks that go the same way from where all part."""

    ranks: tuple[str, ...] = ()


class DivergenceKept(Message):
    """The last call that all are in; None: they have none in common."""

    frame: str | None = None
    where: str | None = None
    branches: tuple[BranchKept, ...] = ()

    def told(self) -> str:
        """The call as frames are written: ``event_loop_overlap (managers/scheduler.py:1126)``."""
        return f"{self.frame} ({self.where})"


class ProcessKept(Message):
    """A process that was met; *label* None: it is no rank."""

    pid: int | None = None
    label: str | None = None


class ComparisonKept(Message):
    """What the stacks say together. *stuck* None: the samples cannot tell."""

    verdict: str
    says: str
    stuck: bool | None = None
    settles: tuple[str, ...] = ()
    ranks: int
    captured: int
    samples: int = 0
    missing: tuple[MissingKept, ...] = ()
    outliers: tuple[str, ...] = ()
    ground: str = ""
    peers: str | None = None
    divergence: DivergenceKept | None = None
    groups: tuple[GroupKept, ...] = ()
    moved: dict[str, bool | None] = Field(default_factory=dict)
    states: dict[str, str] = Field(default_factory=dict)
    processes: tuple[ProcessKept, ...] = ()


def comparison_in(answer: dict[str, Any] | None) -> ComparisonKept | None:
    """That of a diagnostic's *answer*; None where it has none, or one of an unknown shape."""
    kept = (answer or {}).get("comparison")
    try:
        return ComparisonKept.model_validate(kept) if kept else None
    except ValidationError:
        return None


def headline(comparison: ComparisonKept) -> str:
    """The first sentence of what it says, for a title; without the stop at its end."""
    first = comparison.says.partition(". ")[0].rstrip(".")
    return first if len(first) <= LONGEST_TITLE else f"{first[: LONGEST_TITLE - 1]}…"


def beyond_headline(comparison: ComparisonKept) -> str:
    """What it says after its title; all of it where the title is cut."""
    first, _, rest = comparison.says.partition(". ")
    return rest if len(first) <= LONGEST_TITLE else comparison.says
