"""What can be captured, as pages tell of it: equal answers of several processes are one line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, get_args

from app.protocol.messages import Capability, Check, Loss, Preflight, RestartCard

CAPABILITIES: tuple[str, ...] = get_args(Capability)
NAMES = {
    "stacks": "Stacks",
    "native stacks": "Native stacks",
    "coredump": "CUDA coredump",
    "cpu profile": "CPU profile",
    "nccl ras": "NCCL RAS",
    "flight recorder": "Flight recorder",
    "host facts": "Host facts",
    "server log": "Server log",
    "crash dump": "Crash dump",
    "grace period": "Grace period",
    "free space": "Free space",
    "clock": "Clock",
}
WORDS = {True: "ready", False: "not possible", None: "not known"}
LEVELS = {True: "good", False: "bad", None: "unknown"}
MOST_NAMED = 4  # processes named on a line; more are counted


@dataclass(frozen=True)
class Tally:
    """How much can be captured: *ready* of all that could be told, and what could not be told."""

    ready: int
    told: int
    untold: int

    @classmethod
    def of(cls, preflight: Preflight) -> Self:
        checks = [check for _, check in _checks(preflight)]
        ready = sum(check.ready is True for check in checks)
        untold = sum(check.ready is None for check in checks)
        return cls(ready, len(checks) - untold, untold)

    @property
    def says(self) -> str:
        """``11 of 14 ready, 2 not known``."""
        tail = f", {self.untold} not known" if self.untold else ""
        return f"{self.ready} of {self.told} ready{tail}"

    @property
    def level(self) -> str:
        if not self.told:
            return "unknown"
        return "good" if self.ready == self.told else "warn"


@dataclass(frozen=True)
class AnswerTold:
    """One answer of preflight, and of whom it is true."""

    who: str
    ready: bool | None
    says: str
    fix: str | None
    command: str | None

    @property
    def level(self) -> str:
        return LEVELS[self.ready]

    @property
    def word(self) -> str:
        return WORDS[self.ready]


@dataclass(frozen=True)
class CapabilityTold:
    """A row of the preflight table; what is not possible stands first."""

    name: str
    answers: Sequence[AnswerTold]


def capabilities_told(
    preflight: Preflight | None, names: Mapping[str, str]
) -> list[CapabilityTold]:
    """The rows of the preflight table; *names* tells what a process is called here, by its id."""
    if preflight is None:
        return []
    checks = list(_checks(preflight, names))
    rows = []
    for capability in CAPABILITIES:
        mine = [(who, check) for who, check in checks if check.capability == capability]
        if mine:
            rows.append(CapabilityTold(NAMES[capability], answers_told(mine)))
    return rows


def answers_told(checks: Sequence[tuple[str, Check]]) -> list[AnswerTold]:
    """*checks*, each with the name of its process, equal ones as one; the worst first."""
    alike: dict[tuple[bool | None, str, str | None, str | None], list[str]] = {}
    for who, check in checks:
        key = (check.ready, check.says, check.fix, check.command)
        alike.setdefault(key, []).append(who)
    told = [AnswerTold(_named(names), *key) for key, names in alike.items()]
    return sorted(told, key=lambda one: (False, None, True).index(one.ready))


def _named(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} more"


def _checks(
    preflight: Preflight, names: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Check]]:
    for check in preflight.host:
        yield "this host", check
    for process in preflight.processes:
        who = (names or {}).get(process.process_id or "", process.title)
        for check in process.checks:
            yield who, check


@dataclass(frozen=True)
class RestartTold:
    """If this server must be restarted: what each way would save and lose."""

    host: str
    card: RestartCard

    @property
    def losses(self) -> Sequence[Loss]:
        """The gentlest first, as the columns of the table."""
        order = ("SIGTERM", "SIGQUIT", "SIGKILL")
        return sorted(self.card.losses, key=lambda loss: order.index(loss.how))
