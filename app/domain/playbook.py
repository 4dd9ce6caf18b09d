"""The story of an incident: what happened, and what to do next.

Events are facts and are written to the timeline. Steps are work and are queued as jobs; a
step that a person asks for is the same step. ``next_steps`` is the whole of the automation:
read it top to bottom. Nothing here pauses a process, kills one, or does more to a serving
target than read from it; whatever does is for a person to ask for.
"""

from dataclasses import dataclass
from typing import Literal

Probe = Literal["auto", "never", "always"]


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


Step = CollectBundle

KINDS: dict[type, str] = {CollectBundle: "collect"}  # the verb that does each step

INTRUSIVE: frozenset[type] = frozenset()  # steps that are never repeated without consent


def next_steps(event: Event) -> tuple[Step, ...]:
    """The steps that *event* calls for, in order; empty where the story rests."""
    match event:
        case IncidentOpened(target_ids=target_ids, collect=True):
            return tuple(CollectBundle(target_id) for target_id in target_ids)
        case _:
            return ()


def step_name(kind: str) -> str:
    """The step that a verb does, as events name it: "CollectBundle" for "collect"."""
    return next((step.__name__ for step, verb in KINDS.items() if verb == kind), kind)
