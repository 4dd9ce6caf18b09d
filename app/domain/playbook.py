"""The story of an incident: what happened, and what to do next.

Events are facts and are written to the timeline. Steps are work and are queued as jobs; a
step that a person asks for is the same step. ``next_steps`` is the whole of the automation:
read it top to bottom. Nothing here pauses a process, kills one, or does more to a serving
target than read from it; whatever does is for a person to ask for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.domain import ladder

Probe = Literal["auto", "never", "always"]
DiagnosticKind = ladder.Kind


@dataclass(frozen=True, slots=True)
class IncidentOpened:
    title: str
    target_ids: tuple[int, ...] = ()
    collect: bool = False  # whoever opened it asked for a bundle of each target at once


@dataclass(frozen=True, slots=True)
class StateChanged:
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FactsChanged:
    """Title, severity, assignee, tags or problem class were set by a person."""

    changes: dict[str, tuple[str | None, str | None]]  # field -> (before, after)


@dataclass(frozen=True, slots=True)
class NoteAdded:
    text: str


@dataclass(frozen=True, slots=True)
class StepRequested:
    step: str  # "CollectBundle"
    job_id: int
    target: str | None = None


@dataclass(frozen=True, slots=True)
class BundleCollected:
    bundle_id: int
    target: str
    says: str  # the verdict in one sentence
    verdict: str
    answered: int
    asked: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CoredumpTriggered:
    """The trigger was sent to one process; whether it dumps is known later."""

    diagnostic_id: int
    host: str
    process: str  # "TP0, pid 4711"


@dataclass(frozen=True, slots=True)
class DiagnosticTaken:
    """Something was taken; what was refused beside it is counted."""

    diagnostic_id: int
    kind: str
    hosts: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class DiagnosticRefused:
    """Nothing was taken."""

    diagnostic_id: int
    kind: str
    hosts: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class FindingMade:
    """What the stacks or coredumps of a diagnostic say together."""

    diagnostic_id: int
    rule: str  # of docs/signals.md
    says: str


@dataclass(frozen=True, slots=True)
class DumpRead:
    """A file of recorded requests was read, or it was found that it cannot be."""

    dump_id: int
    name: str
    says: str
    readable: bool


@dataclass(frozen=True, slots=True)
class ReplayEnded:
    """Requests were sent again; *says* is the verdict, or how far it came."""

    replay_id: int
    targets: tuple[str, ...]
    verdict: str | None
    says: str


@dataclass(frozen=True, slots=True)
class ReplayTargetDied:
    """A target of a replay went away in the middle of it."""

    replay_id: int
    target: str
    says: str
    in_flight: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordingChanged:
    """Request dumping at a target was switched, or it is not known whether it was."""

    job_id: int
    target: str
    state: Literal["on", "off", "not known"]
    says: str


@dataclass(frozen=True, slots=True)
class StepFailed:
    step: str
    job_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class StepCancelled:
    step: str
    job_id: int
    by: str


@dataclass(frozen=True, slots=True)
class ArtifactAttached:
    artifact_id: int
    name: str
    kind: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ArtifactPurged:
    artifact_id: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReportEdited:
    revision: int
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportShared:
    share_id: int
    expires_at: str
    tier: str


@dataclass(frozen=True, slots=True)
class ShareRevoked:
    share_id: int


Event = (
    IncidentOpened
    | StateChanged
    | FactsChanged
    | NoteAdded
    | StepRequested
    | BundleCollected
    | CoredumpTriggered
    | DiagnosticTaken
    | DiagnosticRefused
    | FindingMade
    | DumpRead
    | RecordingChanged
    | ReplayEnded
    | ReplayTargetDied
    | StepFailed
    | StepCancelled
    | ArtifactAttached
    | ArtifactPurged
    | ReportEdited
    | ReportShared
    | ShareRevoked
)


@dataclass(frozen=True, slots=True)
class CollectBundle:
    """Ask a target's read-only endpoints once and its metrics twice."""

    target_id: int
    probe: Probe = "auto"
    interval_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Diagnose:
    """Ask the agents of hosts for evidence of one kind; always asked for by a person."""

    kind: DiagnosticKind
    process_ids: dict[str, tuple[str, ...]]  # by host name
    samples: int = 1
    interval_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class IngestDump:
    """Read a file of recorded requests that is kept already, apart from us."""

    dump_id: int


@dataclass(frozen=True, slots=True)
class RecordRequests:
    """Have a target write finished requests to files for a while; always asked for by a person.

    It is switched off at its time. An empty *folder*: it is only switched off.
    """

    target_id: int
    folder: str
    threshold: int
    duration_seconds: float
    tokenizers: int = 1


@dataclass(frozen=True, slots=True)
class ReplayRequests:
    """Send recorded requests again to a target that may be harmed; always asked for by a person.

    Without *send* it is only looked at what would be sent.
    """

    replay_id: int
    send: bool = True


Step = CollectBundle | Diagnose | IngestDump | RecordRequests | ReplayRequests

KINDS: dict[type, str] = {  # the verb that does each step
    CollectBundle: "collect",
    Diagnose: "diagnose",
    IngestDump: "ingest",
    RecordRequests: "record",
    ReplayRequests: "replay",
}

# Diagnostics that stop, slow or may end a process: never repeated without consent.
INTRUSIVE: frozenset[DiagnosticKind] = frozenset(
    ("native stacks", "cpu profile", "flight recorder", "coredump")
)


def is_intrusive(step: Step) -> bool:
    """Whether *step* is never to be repeated without consent."""
    if isinstance(step, ReplayRequests):
        return step.send
    return isinstance(step, Diagnose) and step.kind in INTRUSIVE


def next_steps(event: Event) -> tuple[CollectBundle, ...]:
    """The steps that *event* calls for, in order; empty where the story rests."""
    match event:
        case IncidentOpened(target_ids=target_ids, collect=True):
            return tuple(CollectBundle(target_id) for target_id in target_ids)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class ReplayOffer:
    """A replay that could be asked for: of what, to which clean target. Nothing does it itself."""

    dump_id: int
    target_id: int
    select: str  # the suspects, where the dump has some
    says: str


def offers(
    dumps: Sequence[tuple[int, str, int]], clean: Sequence[tuple[int, str]]
) -> tuple[ReplayOffer, ...]:
    """Replays to offer: of each dump (number, name, suspects) to the first of the *clean* targets.

    A dump with suspects comes first: they are what a replay decides about.
    """
    if not clean:
        return ()
    target_id, target = clean[0]
    return tuple(
        ReplayOffer(
            dump_id, target_id, "suspect" if suspects else "", _offer(name, suspects, target)
        )
        for dump_id, name, suspects in sorted(dumps, key=lambda one: one[2] == 0)
    )


def _offer(name: str, suspects: int, target: str) -> str:
    what = "the suspects" if suspects > 1 else "the suspect" if suspects else "the requests"
    return f"Replay {what} of {name} to {target}, which serves nobody."


def step_name(verb: str, kind: str | None = None) -> str:
    """The step that a verb does, as events name it: "CollectBundle", "Diagnose stacks"."""
    name = next((step.__name__ for step, known in KINDS.items() if known == verb), verb)
    return f"{name} {kind}" if kind else name
