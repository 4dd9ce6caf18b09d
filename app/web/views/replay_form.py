"""What the form that asks for a replay is given, and the lists of replays elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from app.web.views.base import Page


@dataclass(frozen=True)
class TargetChoice:
    """A target that it could go to. *refused*: why it cannot, with *fix*; None: it can."""

    id: int
    name: str
    base_url: str
    level: str
    says: str  # clean, or why its name will have to be typed
    seen: str
    chosen: bool
    refused: str | None


@dataclass(frozen=True)
class OtherChoice:
    """A target for side B."""

    id: int
    name: str
    says: str
    chosen: bool


@dataclass(frozen=True)
class SymptomChoice:
    """Something to look for, and by what it is told."""

    value: str
    name: str
    says: str
    chosen: bool


@dataclass(frozen=True)
class SourceTold:
    """The file whose requests are sent."""

    dump_id: int | None
    artifact_id: int | None
    name: str
    says: str
    requests_total: int | None
    chosen: int | None  # how many the selection means; None: not counted


@dataclass(frozen=True)
class NewReplayPage(Page):
    """The form. *given* are its values by name, as text."""

    template: ClassVar[str] = "replays/new.html"
    incident_id: int
    source: SourceTold | None
    sources: Sequence[SourceTold]
    clean: Sequence[TargetChoice]
    others: Sequence[TargetChoice]
    side_b: Sequence[OtherChoice]
    symptoms: Sequence[SymptomChoice]
    given: "Given"
    wrong: str | None


@dataclass(frozen=True)
class Given:
    """What the fields hold."""

    select: str
    reference: str
    mode: str
    speed: str
    parallel: int
    trials: int
    most_new_tokens: int
    request_seconds: str
    ignore_eos: bool
    same_setup: bool
    from_seconds: str
    until_seconds: str
    sample: str
    cut_gaps: str
    media: bool
    code: bool
    unusual: bool  # something in the folded part is not as usual


@dataclass(frozen=True)
class ReplayLine:
    """A replay in a list."""

    id: int
    headline: str
    level: str
    state: str
    targets: str
    asked_at: datetime
    asked_by: str


@dataclass(frozen=True)
class ReplayOfferTold:
    """A replay that could be asked for: a form that is filled in."""

    says: str
    query: str


@dataclass(frozen=True)
class ReplayList:
    """The newest replays of something, and how many there are in all."""

    lines: Sequence[ReplayLine]
    total: int


@dataclass(frozen=True)
class IncidentReplays(ReplayList):
    """The replays of an incident. *offer* None: no dump that was not replayed, or nowhere to."""

    offer: ReplayOfferTold | None
