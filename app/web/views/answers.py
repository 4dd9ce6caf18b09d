"""What each endpoint of a bundle answered, as rows: failures first, what is not known last."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from app.domain.capture import Capture, Outcome
from app.domain.meaning import meaning
from app.store.tables import CaptureRow
from app.web.formats import visible

LONGEST_TOLD = 400  # characters of what a target had a part in

_ORDER = ("bad", "warn", "good", "unknown")
_LEVELS = {
    Outcome.REFUSED: "bad",
    Outcome.TIMEOUT: "bad",
    Outcome.ERROR: "bad",
    Outcome.REJECTED: "warn",
    Outcome.NOT_OFFERED: "unknown",
    Outcome.NO_ACCESS: "unknown",
    Outcome.NOT_ASKED: "unknown",
}
_COUNTED = {
    Outcome.ANSWERED: "answered",
    Outcome.TIMEOUT: "timed out",
    Outcome.REFUSED: "refused",
    Outcome.ERROR: "broke off",
    Outcome.REJECTED: "rejected",
    Outcome.NO_ACCESS: "without access",
    Outcome.NOT_OFFERED: "not offered",
    Outcome.NOT_ASKED: "not asked on purpose",
}
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One endpoint. ``took_seconds`` and ``size_bytes`` None: it was not asked."""

    path: str
    level: str
    answer: str
    took_seconds: float | None
    size_bytes: int | None
    so: str
    names: tuple[str, ...]  # captures with a body to look at, in the order of asking
    probe: bool  # not asked, because it sends a request: may be asked once by a person


def answer_rows(captures: Iterable[CaptureRow], summary: Mapping[str, Any]) -> list[AnswerRow]:
    """One row for each endpoint and outcome; the same endpoint twice with 200 is one row."""
    rows = []
    for _, group in groupby(sorted(captures, key=_same), key=_same):
        asked = list(group)
        rows.append((_ORDER.index(_level(asked[0])), asked[0].position, _row(asked, summary)))
    return [row for _, _, row in sorted(rows, key=lambda one: one[:2])]


def outcomes_told(captures: Iterable[CaptureRow]) -> str:
    """``5 answered, 1 timed out, 1 not asked on purpose``: endpoints by how asking them ended."""
    paths = {(capture.path, capture.outcome) for capture in captures}
    counts = Counter(Outcome(outcome) for _, outcome in paths)
    return ", ".join(f"{counts[one]} {word}" for one, word in _COUNTED.items() if counts[one])


def _same(capture: CaptureRow) -> tuple[str, str, int]:
    return (capture.path, capture.outcome, capture.status or 0)


def _level(capture: CaptureRow) -> str:
    outcome = Outcome(capture.outcome)
    if outcome is not Outcome.ANSWERED:
        return _LEVELS[outcome]
    status = capture.status or 0
    return "good" if status == 200 else "bad" if status >= _SERVER_ERROR else "warn"


def _row(asked: Sequence[CaptureRow], summary: Mapping[str, Any]) -> AnswerRow:
    first = asked[0]
    late = _late_ranks(summary) if first.path.startswith("/v1/loads") else 0
    level = _level(first)
    was_asked = first.outcome != Outcome.NOT_ASKED
    return AnswerRow(
        path=visible(first.path[:LONGEST_TOLD]),
        level="warn" if level == "good" and late else level,
        answer=_answer(asked, late),
        took_seconds=max(one.seconds or 0.0 for one in asked) if was_asked else None,
        size_bytes=sum(one.size_bytes for one in asked) if was_asked else None,
        so=so(first),
        names=tuple(one.name for one in asked if one.sha256),
        probe=not was_asked and first.name.startswith("health"),
    )


def so(capture: CaptureRow) -> str:
    """What the answer or the silence tells, in one sentence."""
    return visible(meaning(_as_capture(capture))[:LONGEST_TOLD])


def _answer(asked: Sequence[CaptureRow], late: int) -> str:
    first = asked[0]
    words = [str(first.status)] if first.status is not None else []
    if first.outcome != Outcome.ANSWERED:
        words.append(first.outcome)
    if len(asked) > 1:
        words.append("twice" if len(asked) == 2 else f"{len(asked)} times")
    if late and first.status == 200:
        words.append(f"{late} {'rank' if late == 1 else 'ranks'} old")
    return ", ".join(words)


def _late_ranks(summary: Mapping[str, Any]) -> int:
    ranks = (summary.get("load") or {}).get("per_rank") or []
    return sum(bool(rank.get("stale")) for rank in ranks)


def _as_capture(row: CaptureRow) -> Capture:
    """The row without its body, for those who judge by the outcome alone."""
    return Capture(
        name=row.name,
        path=row.path,
        outcome=Outcome(row.outcome),
        status=row.status,
        started_at=row.started_at,
        seconds=row.seconds,
        detail=row.detail,
    )
