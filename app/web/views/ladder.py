"""The evidence ladder of an incident: what can be taken now, at what cost, and when it last was."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.ladder import Rung
from app.store.tables import Target
from app.web.views.readiness import RestartTold


@dataclass(frozen=True)
class ReadyTold:
    """Whether one thing can be captured now, from the last preflight of the server's hosts."""

    level: str
    word: str
    says: str
    fix: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class LastRun:
    """The last time that this was taken in this incident."""

    id: int
    at: datetime
    says: str


@dataclass(frozen=True)
class RungTold:
    """A rung as the incident's page shows it. *pressable* False: nothing could come of it."""

    rung: Rung
    ready: ReadyTold
    last: LastRun | None
    pressable: bool


@dataclass(frozen=True)
class Choice:
    """A server that evidence can be taken of; *key* names it in the form and in the URL."""

    key: str
    name: str  # "decode-a on gpu-14"
    hosts: Sequence[str]
    processes: Sequence[tuple[str, str]]  # (process id, how it is called: "TP0, pid 41871")
    gpu_bytes: int | None  # used by its processes; a whole coredump is about as large
    level: str
    says: str  # "8 ranks, heard 12 s ago", or why it cannot be reached

    @property
    def target_id(self) -> int:
        return int(self.key.partition(".")[0])


@dataclass(frozen=True)
class LadderTold:
    """The rungs below the bundle, for the *chosen* server; None where none is linked."""

    rungs: Sequence[RungTold]
    choices: Sequence[Choice]
    chosen: Choice | None
    unlinked: Sequence[Target]  # targets of the incident without a server
    profile_command: str | None  # starts PyTorch's profiler; never sent from here
    restarts: Sequence[RestartTold]

    def under(self, effect: str) -> list[RungTold]:
        """The rungs that stand under the divider *effect*."""
        return [one for one in self.rungs if one.rung.effect == effect]
