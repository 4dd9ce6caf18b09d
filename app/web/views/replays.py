"""What the page of a replay is given: its finding, its progress, its figures, what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from app.store.replays import RESUMABLE, STARTABLE
from app.web.views.base import Fragment, Page
from app.web.views.dump_requests import Fact
from app.web.views.jobs import BAR_WIDTH, Bar, Following
from app.web.views.replay_pictures import LateBars, Scatter
from app.web.views.tab import icon_of

AT_WORK = ("waiting", "planning", "running")


@dataclass(frozen=True)
class SideTold:
    """A target of a replay. *name* stands for it in a comparison: "A"."""

    name: str
    target_id: int
    target: str
    version: str | None
    clean: bool


@dataclass(frozen=True)
class ReplayTold:
    """A replay as its page tells of it; texts from outside with their control characters shown."""

    id: int
    incident_id: int
    artifact_id: int
    dump_id: int | None
    job_id: int | None
    outcomes_artifact_id: int | None
    file: str
    state: str
    says: str
    reason: str | None
    symptom: str
    symptom_by: str
    how: str  # "at the recorded times"
    selection: str
    trials_wanted: int
    asked_by: str
    asked_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    planned: int | None
    total: int | None
    sent: int
    completed: int
    failed: int
    sides: Sequence[SideTold]
    cancelling: bool
    waited_long: bool

    @property
    def unfinished(self) -> bool:
        """Whether its job is at work, or waits to be."""
        return self.state in AT_WORK

    @property
    def startable(self) -> bool:
        """Whether nothing was sent yet, and a person may have it sent."""
        return self.state in STARTABLE

    @property
    def resumable(self) -> bool:
        """Whether it stopped, and a person may have it go on."""
        return self.state in RESUMABLE

    @property
    def percent(self) -> int | None:
        """Whole percent of all requests of all trials; None while that is not known."""
        return min(100, 100 * self.sent // self.total) if self.total else None

    @property
    def tab_title(self) -> str:
        """``57 % · replay 58``, for the browser's tab."""
        share = f"{self.percent} %" if self.unfinished and self.percent is not None else self.state
        return f"{share} · replay {self.id}"

    @property
    def tab_icon(self) -> str:
        return icon_of(self.state)


@dataclass(frozen=True)
class EvidenceChip:
    """What a sentence rests on. *kind* is of the page behind it."""

    text: str
    kind: str  # "outcomes", "bundle", "artifact"
    id: int | None = None
    query: str = ""


@dataclass(frozen=True)
class ReplayVerdict:
    """What it says so far. *proof* None: nothing is claimed yet."""

    level: str  # of the panel: "bad", "unknown" or ""
    mark: str
    line: str
    proof: str | None
    why: str
    would_settle: str | None
    chips: Sequence[EvidenceChip]


@dataclass(frozen=True)
class Confirm:
    """A target's name that is to be typed before it is sent to. *required* False: it may help."""

    target: str
    says: str
    fix: str
    required: bool


@dataclass(frozen=True)
class RunningTold:
    """The trial that runs, or ran last. None is not known."""

    title: str
    planned: int
    completed: int
    failed: int
    elapsed: timedelta | None
    about_seconds: float | None
    suspect: int | None
    suspect_in_seconds: float | None

    @property
    def ended(self) -> int:
        return self.completed + self.failed

    @property
    def bar(self) -> Bar:
        """What was answered, as ``done``, and what failed, as ``in_hand``."""
        if not self.planned:
            return Bar(0, 0)
        return Bar(
            BAR_WIDTH * self.completed // self.planned, BAR_WIDTH * self.failed // self.planned
        )


@dataclass(frozen=True)
class Progress:
    """Verdict, progress, and what may be done about it."""

    verdict: ReplayVerdict | None
    running: RunningTold | None
    confirms: Sequence[Confirm]


@dataclass(frozen=True)
class PlanTold:
    """What is sent to one side, and what is not."""

    side: SideTold
    facts: Sequence[Fact]
    notes: Sequence[str]
    stripped: Sequence[tuple[str, str, int]]  # field, what was done to it, of how many requests
    left_out: Sequence[dict[str, Any]]
    left_out_total: int


@dataclass(frozen=True)
class Figures:
    """One trial in pictures."""

    trial: str
    scatter: Scatter
    late: LateBars
    level: str
    valid: str
    facts: Sequence[Fact]


@dataclass(frozen=True)
class TrialRow:
    """One run of the requests."""

    number: int
    name: str
    build: str
    level: str
    outcome: str
    answered: str
    p50: str
    p99: str
    late: str
    bad: bool
    bundles: Sequence[tuple[str, int]]
    in_flight: Sequence[int]


@dataclass(frozen=True)
class ErrorRow:
    """Failures of one class, counted by trial."""

    error: str
    level: str
    name: str
    counts: Sequence[str]  # a side each
    recorded: str
    first_trial: int | None
    first_index: int | None
    reading: str
    bad: bool


@dataclass(frozen=True)
class ThenStep:
    """What can be done next: a form that is filled in, something to read, or a command to run.

    *form* and *outcomes* are the queries of these pages; *place* is on the replay's own.
    """

    what: str
    why: str
    verb: str = ""
    form: str | None = None
    outcomes: str | None = None
    place: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class RecipeTold:
    """How to start a build that died so that the next death leaves a coredump."""

    trial: str
    says: str
    script: str
    appears_at: str
    warnings: Sequence[str]


@dataclass(frozen=True)
class Rest:
    """What stands below the progress. *figures* None: nothing to draw, or so many rows.

    *live*: it asks for itself. *asked* is the trial that a person chose to see.
    """

    figures: Figures | None
    drawn_apart: bool
    live: bool
    trial: int | None
    asked: int | None
    trials: Sequence[TrialRow]
    errors: Sequence[ErrorRow]
    error_heads: Sequence[str]
    steps: Sequence[ThenStep]
    recipe: RecipeTold | None


@dataclass(frozen=True)
class ReplayPage(Page):
    """One replay. *following*: how its progress is followed."""

    template: ClassVar[str] = "replays/page.html"
    finding: str
    replay: ReplayTold
    progress: Progress
    plans: Sequence[PlanTold]
    change: str
    rest: Rest
    following: Following
    may_act: bool
    names_tab: bool


@dataclass(frozen=True)
class ReplayProgress(Fragment):
    """How far a replay is, and what it says so far; keeps itself fresh while it is at work.

    It brings the title of its page along, which may say more by then.
    """

    template: ClassVar[str] = "replays/_progress.html"
    finding: str
    replay: ReplayTold
    progress: Progress
    following: Following
    may_act: bool
    names_tab: bool


@dataclass(frozen=True)
class ReplayRest(Fragment):
    """Figures, trials and errors; keep themselves fresh while it is at work."""

    template: ClassVar[str] = "replays/_rest.html"
    replay: ReplayTold
    rest: Rest
    may_act: bool
