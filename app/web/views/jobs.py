"""What job pages are given: how far a job is, in words."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Literal, Self

from app.domain.timeline import STEP_NAMES, work
from app.store.jobs import RESUMABLE, UNFINISHED
from app.store.outbox import step_of
from app.store.tables import Job
from app.web.formats import visible
from app.web.views.base import Fragment, Page
from app.web.views.tab import icon_of

BAR_WIDTH = 1000
LONGEST_TOLD = 1000  # characters of what a target may have had a part in
WAITED_LONG = timedelta(seconds=10)

Following = Literal["events", "tick", ""]  # how the fragment keeps itself fresh; "" for not at all

_LEVELS = {
    "queued": "quiet",
    "running": "good",
    "succeeded": "good",
    "failed": "bad",
    "cancelled": "quiet",
    "interrupted": "warn",
}
_ENDS = {
    "succeeded": "done",
    "failed": "failed",
    "cancelled": "was cancelled",
    "interrupted": "was interrupted",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of 1000 units: what is done, and what is in hand and therefore hatched."""

    done: int
    in_hand: int


@dataclass(frozen=True)
class JobTold:
    """A job as pages tell of it. ``total`` None: how much there is to do is not known."""

    id: int
    what: str  # "Collecting a bundle from decode-a"
    state: str
    level: str  # its mark
    says: str
    reason: str | None
    done: int
    total: int | None
    elapsed: timedelta | None  # None before it started
    cancelling: bool
    waited_long: bool  # queued for so long that no worker seems to be there
    incident_id: int | None
    bundle_id: int | None
    requested_by: str
    created_at: datetime
    attempts: int
    diagnostic_id: int | None = None
    dump_id: int | None = None
    replay_id: int | None = None
    due_at: datetime | None = None  # what it owes to its target then is done sooner, not cancelled

    @classmethod
    def of(cls, job: Job, *, target: str | None, bundle_id: int | None, now: datetime) -> Self:
        """What is told of *job* at *now*."""
        assert job.id is not None
        step = step_of(job)
        known = step if step in STEP_NAMES else job.kind.capitalize()
        return cls(
            id=job.id,
            what=work(known, visible(target) if target else None),
            state=job.state,
            level=_LEVELS.get(job.state, "unknown"),
            says=visible(job.says[:LONGEST_TOLD]),
            reason=visible(job.reason[:LONGEST_TOLD]) if job.reason else None,
            done=job.done,
            total=job.total,
            elapsed=(job.finished_at or now) - job.started_at if job.started_at else None,
            cancelling=job.cancel_requested_at is not None and job.state == "running",
            waited_long=job.state == "queued"
            and now - (job.due_at or job.created_at) > WAITED_LONG,
            incident_id=job.incident_id,
            bundle_id=bundle_id,
            requested_by=job.requested_by,
            created_at=job.created_at,
            attempts=job.attempts,
            due_at=job.due_at,
        )

    @property
    def unfinished(self) -> bool:
        return self.state in UNFINISHED

    @property
    def resumable(self) -> bool:
        """Whether a person may ask for the rest of it."""
        return self.state in RESUMABLE

    @property
    def bar(self) -> "Bar":
        """How the bar of the progress is drawn."""
        if not self.total:
            return Bar(0, BAR_WIDTH if self.unfinished else 0)
        done = BAR_WIDTH * min(self.done, self.total) // self.total
        return Bar(done, min(BAR_WIDTH // self.total, BAR_WIDTH - done) if self.unfinished else 0)

    @property
    def percent(self) -> int | None:
        """Whole percent done; None while the total is not known."""
        return min(100, 100 * self.done // self.total) if self.total else None

    @property
    def finding(self) -> str:
        """The page's title: what became of it."""
        end = _ENDS.get(self.state)
        if end:
            return f"{self.what}: {end}"
        if self.state == "queued" and self.due_at:
            return f"{self.what} waits for its time"
        return f"{self.what} waits for a worker" if self.state == "queued" else f"{self.what} runs"

    @property
    def tab_title(self) -> str:
        """``57 % · collecting a bundle from decode-a``, for the browser's tab."""
        told = self.what[0].lower() + self.what[1:]
        share = f"{self.percent} %" if self.percent is not None else self.state
        return f"{share} · {told}" if self.unfinished else f"{self.state} · {told}"

    @property
    def tab_icon(self) -> str:
        return icon_of(self.state)


@dataclass(frozen=True)
class JobPage(Page):
    """One job: what it does, how far it is, and what to do about it."""

    template: ClassVar[str] = "jobs/page.html"
    job: JobTold
    following: Following
    may_act: bool
    names_tab: bool


@dataclass(frozen=True)
class JobProgress(Fragment):
    """How far a job is; keeps itself fresh while it is unfinished."""

    template: ClassVar[str] = "jobs/_progress.html"
    job: JobTold
    following: Following
    may_act: bool
    names_tab: bool  # whether it renames the browser's tab: only when it is not part of a page
