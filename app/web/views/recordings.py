"""What pages are given of recordings and of keeping the exact request."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from app.domain.payload import ENDPOINTS
from app.domain.recording import command_off
from app.store.recordings import Recording
from app.store.tables import Incident, Target
from app.web.views.base import Fragment, Page

_STATES = {
    "asked": ("quiet", "asked for"),
    "sent": ("unknown", "sent, no answer yet"),
    "on": ("warn", "on"),
    "not known": ("unknown", "may be on: not known"),
    "still on?": ("bad", "still on?"),
    "off": ("quiet", "off"),
    "refused": ("bad", "refused: nothing is on"),
    "replaced": ("quiet", "replaced by a later one"),
}


@dataclass(frozen=True)
class RecordingTold:
    """A recording as pages tell of it. *server_key*: of the server whose dumps can be fetched."""

    job_id: int
    incident_id: int | None
    target: Target
    folder: str
    threshold: int
    level: str
    state: str
    says: str
    until: datetime | None
    may_be_on: bool
    wrote: bool  # files may lie in its folder
    live: bool  # it may change soon
    command: str
    server_key: str | None = None

    @classmethod
    def of(cls, one: Recording, target: Target, server_key: str | None = None) -> Self:
        level, state = _STATES[one.phase]
        return cls(
            job_id=one.job_id,
            incident_id=one.incident_id,
            target=target,
            folder=one.folder,
            threshold=one.threshold,
            level=level,
            state=state,
            says=one.says,
            until=one.until,
            may_be_on=one.may_be_on,
            wrote=one.phase not in ("asked", "refused"),
            live=not one.ended,
            command=command_off(target.base_url),
            server_key=server_key,
        )


@dataclass(frozen=True)
class RecordingsPart(Fragment):
    """The recordings of an incident; keeps itself fresh while one may change."""

    template: ClassVar[str] = "incidents/_recordings.html"
    incident: Incident
    recordings: Sequence[RecordingTold]
    may_act: bool
    now: datetime


@dataclass(frozen=True)
class Proposed:
    """What would be sent, to the letter."""

    url: str
    on: str
    off: str
    folder: str
    threshold: int
    minutes: int
    until: datetime
    why: str  # the threshold that is proposed
    suggested: int
    doubts: Sequence[str]
    refused: str | None  # why nothing is sent to this server
    fix: str


@dataclass(frozen=True)
class RecordingPage(Page):
    """Asking for a recording: what is sent is shown before it is."""

    template: ClassVar[str] = "incidents/recording.html"
    incident: Incident
    targets: Sequence[Target]
    target: Target
    proposed: Proposed
    current: RecordingTold | None
    now: datetime


@dataclass(frozen=True)
class PayloadPage(Page):
    """Keeping the exact request by paste."""

    template: ClassVar[str] = "incidents/payload.html"
    incident: Incident
    endpoints: Sequence[str] = ENDPOINTS
