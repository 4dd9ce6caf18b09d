"""What the page of a dump is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from app.store.dump_tables import Dump, DumpRequest
from app.store.dumps import READ
from app.web.formats import visible
from app.web.views.base import Page
from app.web.views.dump_pictures import Picture
from app.web.views.dump_requests import Fact, RequestTold
from app.web.views.jobs import Following, JobTold
from app.web.views.replay_form import ReplayList

_LEVELS = {
    "ready": "good", "unreadable": "bad", "failed": "bad", "waiting": "quiet", "reading": "quiet",
}  # fmt: skip
_TRIGGERS = {"supported": "most likely the trigger", "hypothesis": "may be the trigger"}


@dataclass(frozen=True)
class DumpTold:
    """A dump as pages tell of it; texts from outside with their control characters shown."""

    id: int
    incident_id: int
    artifact_id: int
    job_id: int | None
    name: str
    kind: str
    state: str
    level: str  # its mark
    says: str
    added_by: str
    added_at: datetime
    requests_total: int | None

    @classmethod
    def of(cls, dump: Dump) -> Self:
        assert dump.id is not None
        return cls(
            id=dump.id,
            incident_id=dump.incident_id,
            artifact_id=dump.artifact_id,
            job_id=dump.job_id,
            name=visible(dump.name),
            kind=visible(dump.kind or "dump") if dump.state == "ready" else "file",
            state=dump.state,
            level=_LEVELS.get(dump.state, "unknown"),
            says=visible(dump.says),
            added_by=visible(dump.added_by),
            added_at=dump.added_at,
            requests_total=dump.requests_total,
        )

    @property
    def is_read(self) -> bool:
        """Whether there is anything to see of its requests."""
        return self.state in READ

    @property
    def at_work(self) -> bool:
        """Whether its job is what counts now: it goes on, or it ended before the file did."""
        return not self.is_read and self.state != "purged"


@dataclass(frozen=True)
class SuspectTold:
    """A request to look at first. *trigger* is the status of that claim; None: not claimed."""

    request: RequestTold
    why: str
    trigger: str | None

    @classmethod
    def of(cls, suspect: Mapping[str, Any], row: DumpRequest) -> Self:
        why, trigger = visible(str(suspect.get("why"))), suspect.get("trigger")
        return cls(
            RequestTold.of(row),
            why=why.partition("): ")[2] if trigger else why,
            trigger=trigger if trigger in _TRIGGERS else None,
        )

    @property
    def says(self) -> str:
        """What is claimed of it; empty where nothing is."""
        return _TRIGGERS[self.trigger] if self.trigger else ""


@dataclass(frozen=True)
class Column:
    """The head of a column. *href* None: it does not sort; *direction* empty: it does not now."""

    name: str
    href: str | None
    direction: str
    is_number: bool


@dataclass(frozen=True)
class Asked:
    """The form above the table as it was sent."""

    state: str
    feature: str
    suspect: bool
    rid: str
    sort: str
    restricts: bool


@dataclass(frozen=True)
class Table:
    """A page of requests. *matching* None: not counted, as that takes as long as reading them."""

    rows: Sequence[RequestTold]
    columns: Sequence[Column]
    asked: Asked
    features: Sequence[tuple[str, int]]  # to choose from, with how many have each
    matching: int | None
    first: str | None  # link to the first page; None: this is it
    following: str | None  # link to the next one


@dataclass(frozen=True)
class Inside:
    """What reading told of the file as a whole."""

    facts: Sequence[Fact]
    launch_command: str | None
    blocked: Sequence[str]
    problems: Sequence[str]
    redacted: Sequence[str]
    truncated: bool
    fix: str | None  # what to do about a file that cannot be read


@dataclass(frozen=True)
class Sibling:
    """Another dump of the same incident."""

    id: int
    name: str
    says: str


@dataclass(frozen=True)
class DumpPage(Page):
    """One dump; *again*: the same file was just sent once more."""

    template: ClassVar[str] = "dumps/page.html"
    dump: DumpTold
    finding: str
    again: bool
    may_act: bool
    job: JobTold | None
    following: Following
    names_tab: bool
    inside: Inside
    suspects: Sequence[SuspectTold]
    suspects_total: int
    pictures: Sequence[Picture]
    table: Table | None  # None: there are no rows
    siblings: Sequence[Sibling]
    replays: ReplayList
