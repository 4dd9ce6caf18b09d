"""What the pages of one incident are given, each figure already in the words of the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from app.store.tables import Incident, Target
from app.web.views.base import Page
from app.web.views.bundle_told import Change
from app.web.views.evidence import EvidenceRow
from app.web.views.incident_dumps import IncidentDumps
from app.web.views.jobs import Following, JobTold
from app.web.views.ladder import LadderTold, LastRun, RungTold
from app.web.views.recordings import RecordingTold
from app.web.views.replay_form import IncidentReplays
from app.web.views.same_faults import SameFaultsTold
from app.web.views.signals import Chip
from app.web.views.timeline import Story
from app.web.vitals import Vital


@dataclass(frozen=True)
class Said:
    """A claim as it is shown: the sentence, what is behind it, and where that can be seen."""

    says: str
    status: str
    chips: Sequence[Chip]


@dataclass(frozen=True)
class VerdictTold:
    """The verdict panel. *level* is bad, unknown, or empty for ink on paper."""

    level: str
    mark: str
    line: str
    strongest: Said | None


@dataclass(frozen=True)
class Elsewhere:
    """A link into the ladder; *key* None: no server is linked yet."""

    says: str
    key: str | None


@dataclass(frozen=True)
class StepPlace:
    """Where a step is done: a route and its parameters, and a place on that page.

    *route* empty: on the page it stands on.
    """

    says: str
    route: str
    parameters: Mapping[str, int]
    anchor: str = ""


@dataclass(frozen=True)
class StepTold:
    """One thing to do; where a rung does it, its button, or the way to where it can be pressed.

    *place* is where else in the console it is done, for who may do it. *taken* is the diagnostic
    that has it already, since the bundle that calls for it.
    """

    text: str
    why: str
    risk: str
    command: str | None
    rung: RungTold | None = None
    elsewhere: Elsewhere | None = None
    place: StepPlace | None = None
    taken: LastRun | None = None


@dataclass(frozen=True)
class SinceHealthy:
    """What changed from the target's last healthy bundle to the newest one here."""

    bundle_id: int
    at: datetime
    changes: Sequence[Change]  # the most suspect ones
    more: int  # changes that are not shown
    alike: int


@dataclass(frozen=True)
class LastBundle:
    """The newest whole bundle here, and what changed since a healthy one, if there is one."""

    id: int
    at: datetime
    seconds: float | None
    since_healthy: SinceHealthy | None


@dataclass(frozen=True)
class IncidentPage(Page):
    template: ClassVar[str] = "incidents/page.html"
    incident: Incident
    finding: str
    level: str
    health: str
    setup: str  # model, topology and version, as far as they are known
    verdict: VerdictTold
    vitals: Sequence[Vital]
    steps: Sequence[StepTold]
    bundle: LastBundle | None
    targets: Sequence[Target]
    job: JobTold | None  # the newest one at work; the include shows it
    more_jobs: Sequence[JobTold]
    may_act: bool
    story: Story
    now: datetime
    evidence: Sequence[EvidenceRow]
    ladder: LadderTold
    recordings: Sequence[RecordingTold]
    dumps: IncidentDumps
    replays: IncidentReplays
    same_faults: SameFaultsTold
    following: Following = "events"
    names_tab: bool = False  # the job is not what the tab is about


@dataclass(frozen=True)
class NewIncidentPage(Page):
    template: ClassVar[str] = "incidents/new.html"
    targets: Sequence[Target]
    chosen: Sequence[int]


@dataclass(frozen=True)
class EditIncidentPage(Page):
    template: ClassVar[str] = "incidents/edit.html"
    incident: Incident
    severities: Sequence[str]
    problem_classes: Sequence[str]
