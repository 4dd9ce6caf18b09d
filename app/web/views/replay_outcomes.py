"""What the page of a replay's outcomes is given: one row a request and trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from app.domain.replay.logprobs import NOISE_LOGPROB_GAP
from app.domain.replay.outcomes import ERROR_CLASSES
from app.domain.replay.phrases import phrase
from app.domain.replay.readings import level_of, name_of
from app.store.replay_tables import ReplayOutcome
from app.web.formats import milliseconds, number, span, visible
from app.web.views.base import Page

_NONE = "–"


@dataclass(frozen=True)
class OutcomeRow:
    """How one request went, beside how it went when it was recorded."""

    trial: int
    index: int
    rid: str | None
    level: str
    state: str
    says: str
    status: str
    first: str
    took: str
    was: str
    tokens: str
    cached: str
    late: str
    bad: bool

    @classmethod
    def of(cls, row: ReplayOutcome) -> Self:
        error = next((one for one in ERROR_CLASSES if one == row.error), None)
        state = "answered" if error is None else name_of(error)
        return cls(
            trial=row.trial,
            index=row.position,
            rid=visible(row.rid) if row.rid else None,
            level="" if error is None else level_of(error),
            state=state,
            says=visible(phrase(row.error, row.status, row.says) or "") or _differs(row),
            status=_NONE if row.status is None else str(row.status),
            first=_seconds(row.ttft_seconds),
            took=_seconds(row.e2e_seconds),
            was=_was(row),
            tokens=f"{_count(row.completion_tokens)} / {_count(row.recorded_completion_tokens)}",
            cached=_count(row.cached_tokens),
            late=_NONE if row.lateness_ms is None else milliseconds(row.lateness_ms),
            bad=error is not None and level_of(error) == "bad",
        )


@dataclass(frozen=True)
class OutcomesAsked:
    """The form above the table as it was sent."""

    trial: int | None
    state: str
    error: str
    restricts: bool


@dataclass(frozen=True)
class OutcomesPage(Page):
    """A page of outcomes. *errors* are the classes that are there, with their names."""

    template: ClassVar[str] = "replays/outcomes.html"
    finding: str
    replay_id: int
    incident_id: int
    dump_id: int | None
    outcomes_artifact_id: int | None
    asked: OutcomesAsked
    trials: Sequence[tuple[int, str]]
    errors: Sequence[tuple[str, str]]
    rows: Sequence[OutcomeRow]
    first: str | None
    following: str | None


def _differs(row: ReplayOutcome) -> str:
    """Where the answer leaves the recorded one, and how far apart the two tokens were there."""
    if row.first_divergent_token is None:
        return ""
    where, gap = f"differs from token {number(row.first_divergent_token)} on", row.logprob_gap
    if gap is None:
        return f"{where}, by how much is not known"
    least = "" if abs(gap) <= NOISE_LOGPROB_GAP else "at least "
    return f"{where}, log probability {least}{gap:.2f} apart"


def _was(row: ReplayOutcome) -> str:
    if row.recorded_state != "finished":
        return row.recorded_state or "not known"
    return _seconds(row.recorded_e2e_seconds)


def _seconds(value: float | None) -> str:
    return _NONE if value is None else span(value)


def _count(value: int | None) -> str:
    return _NONE if value is None else number(value)
