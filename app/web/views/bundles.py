"""What bundle pages are given: one answer to "what answered, and what does that prove"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from app.store.tables import BundleRow, CaptureRow
from app.web.places import Shown
from app.web.views.answers import AnswerRow, answer_rows
from app.web.views.base import Fragment, Page
from app.web.views.bundle_told import (
    BundleTold,
    DiffTold,
    LoadTold,
    SignalsTold,
    VerdictTold,
    WindowTold,
)
from app.web.views.jobs import Following, JobTold


@dataclass(frozen=True)
class BundlePage(Page):
    """A bundle: verdict, answers, load, signals, the window between two scrapes, the diff."""

    template: ClassVar[str] = "bundles/page.html"
    bundle: BundleTold
    answers: Sequence[AnswerRow]
    live: bool
    job: JobTold | None
    following: Following
    may_act: bool
    names_tab: bool
    verdict: VerdictTold | None
    load: LoadTold
    signals: SignalsTold
    window: WindowTold
    healthy: BundleRow | None
    diff: DiffTold | None
    problems: Sequence[str]
    masked: int
    configuration: str | None  # name of the capture that tells the whole of it


@dataclass(frozen=True)
class BundleAnswers(Fragment):
    """What answered so far; asks for itself while the bundle is being collected."""

    template: ClassVar[str] = "bundles/_answers.html"
    bundle: BundleTold
    answers: Sequence[AnswerRow]
    live: bool
    may_act: bool


@dataclass(frozen=True)
class CapturePage(Page):
    """One captured body as text, with the place that a claim rests on marked."""

    template: ClassVar[str] = "bundles/capture.html"
    bundle: BundleTold
    name: str
    path: str
    outcome: str
    status: int | None
    seconds: float | None
    so: str
    size_bytes: int
    at: str
    part: Shown
    redacted: int


@dataclass(frozen=True)
class DiffPage(Page):
    """What changed between two bundles."""

    template: ClassVar[str] = "bundles/diff.html"
    before: BundleTold
    after: BundleTold
    diff: DiffTold


def answers_of(row: BundleRow, captures: Sequence[CaptureRow]) -> list[AnswerRow]:
    """The rows of "What answered", as far as the bundle has come."""
    return answer_rows(captures, row.summary or {})
