"""What NCCL's RAS said, as a diagnostic keeps it: the part ``ras`` of its answer."""

from typing import Any

from pydantic import ValidationError

from app.protocol.messages import Message

LONGEST_TITLE = 240  # characters
_LEVELS = {True: "bad", False: "quiet", None: "unknown"}


class ReadingKept(Message):
    """One answer; *source* is the number of its artifact."""

    source: str
    form: str = ""
    version: str | None = None
    whole: bool = True


class UnreadKept(Message):
    """A file that is no answer of NCCL, and why."""

    source: str
    why: str = ""


class FewKept(Message):
    """A rank that is behind, ahead or different; None: not known."""

    rank: int
    label: str | None = None
    host: str | None = None
    pid: int | None = None
    before: int | None = None
    now: int | None = None

    @property
    def who(self) -> str:
        return self.label or f"rank {self.rank}"


class AbsentKept(Message):
    """A rank that NCCL has no data of."""

    rank: int
    label: str | None = None
    silent: bool | None = None
    dead: bool | None = None

    @property
    def who(self) -> str:
        return self.label or f"rank {self.rank}"

    @property
    def why(self) -> str:
        if self.dead:
            return "given up"
        if self.silent is None:
            return "missing"
        return "no answer" if self.silent else "not in it"


class CommunicatorKept(Message):
    """Ranks that act together. *stuck* None: these answers cannot tell."""

    communicator: str
    size: int | None = None
    standing: str
    stuck: bool | None = None
    growth: str | None = None
    says: str = ""
    kind: str = "collectives"
    low: int | None = None
    high: int | None = None
    few: tuple[FewKept, ...] = ()
    few_count: int = 0
    absent: tuple[AbsentKept, ...] = ()
    absent_count: int = 0
    errors: tuple[str, ...] = ()
    not_mapped: str | None = None

    @property
    def short(self) -> str:
        return self.communicator.partition(" ")[0]

    @property
    def level(self) -> str:
        """Of its counts: even ones are good only while they grow."""
        if self.standing == "even":
            return "good" if self.growth == "all" else "unknown"
        return _LEVELS[self.stuck]

    @property
    def left_out(self) -> int:
        """Ranks of the few that are not listed."""
        return max(0, self.few_count - len(self.few))


class RasKept(Message):
    """Everything that NCCL answered in one diagnostic."""

    says: str
    seconds: float | None = None
    readings: tuple[ReadingKept, ...] = ()
    unread: tuple[UnreadKept, ...] = ()
    communicators: int = 0
    shown: tuple[CommunicatorKept, ...] = ()
    left_out: int = 0

    @property
    def version(self) -> str | None:
        return next((one.version for one in self.readings if one.version), None)


def ras_in(answer: dict[str, Any] | None) -> RasKept | None:
    """That of a diagnostic's *answer*; None where it has none, or one of an unknown shape."""
    kept = (answer or {}).get("ras")
    try:
        return RasKept.model_validate(kept) if kept else None
    except ValidationError:
        return None


def headline(ras: RasKept) -> str:
    """The first sentence of what it says, for a title; without the stop at its end."""
    first = ras.says.partition(". ")[0].rstrip(".")
    return first if len(first) <= LONGEST_TITLE else f"{first[: LONGEST_TITLE - 1]}…"
