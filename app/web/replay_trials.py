"""Trials and failures of a replay as rows of their tables."""

from collections.abc import Iterator
from typing import Any

from sqlmodel import Session

from app.domain.replay.outcomes import ERROR_CLASSES, ErrorClass
from app.domain.replay.readings import level_of, name_of, reading
from app.store.dump_tables import Dump
from app.store.replay_figures import first_failed
from app.store.tables import ReplayTrial
from app.web.formats import milliseconds, number, span, visible
from app.web.replay_standing import Standing
from app.web.views.replays import ErrorRow, TrialRow

_LOST_OR_SILENT = frozenset(
    ("connection-reset", "stream-cut", "timeout", "no-first-token", "connection-refused")
)
_NONE = "–"
_SHOWN = {"shown": "bad", "not shown": "good", "inconclusive": "unknown"}
_NO = {
    "crash": "no crash", "hang": "no hang", "latency": "not slower", "error": "no error",
    "output": "same output",
}  # fmt: skip


def trial_rows(stands: Standing) -> list[TrialRow]:
    """The trials in the order of running."""
    return [_trial(stands, one) for one in stands.trials]


def error_heads(stands: Standing) -> list[str]:
    """The heads of the counts: a column for each side, with the names of its trials."""
    return [", ".join(stands.label(one) for one in mine) for mine in _by_side(stands)]


def error_rows(session: Session, stands: Standing) -> list[ErrorRow]:
    """Failures by class: what the target's going away explains first, then the most frequent."""
    totals: dict[ErrorClass, int] = {}
    for trial in stands.trials:
        for error in ERROR_CLASSES:
            if count := trial.errors.get(error):
                totals[error] = totals.get(error, 0) + int(count)
    ordered = sorted(totals, key=lambda error: (-totals[error], error))
    rows = [_error(session, stands, error) for error in ordered]
    return sorted(rows, key=lambda row: not row.bad)


def _trial(stands: Standing, trial: ReplayTrial) -> TrialRow:
    document = stands.told_of(trial)
    level, outcome = _outcome(stands, trial, document)
    e2e = (document.get("replayed") or {}).get("e2e") or {}
    late = (trial.lateness_ms or {}).get("p99")
    so_far = "so far" if trial.state == "running" else f"of {number(trial.planned)}"
    return TrialRow(
        number=trial.number,
        name=stands.label(trial),
        build=stands.versions.get(trial.side, "not known"),
        level=level,
        outcome=outcome,
        answered=f"{number(trial.completed)} {so_far}" if trial.started_at else _NONE,
        p50=_seconds(e2e.get("p50")),
        p99=_seconds(e2e.get("p99")),
        late=milliseconds(late) if late is not None else _NONE,
        bad=level == "bad",
        bundles=list(_bundles(trial)),
        in_flight=list((trial.died or {}).get("in_flight") or ())[:1000],
    )


def _outcome(stands: Standing, trial: ReplayTrial, document: Any) -> tuple[str, str]:  # noqa: ANN401
    if trial.died:
        sure = "went away" if trial.died.get("certain") else "seems to have gone away"
        level = "bad" if trial.died.get("certain") else "warn"
        unsent = int(trial.errors.get("not-sent") or 0)
        rest = f", {number(unsent)} not sent" if unsent else ""
        return level, f"{sure} after request {trial.died.get('last_sent')}{rest}"
    if trial.state == "running":
        return "unknown", "running"
    if trial.started_at is None:
        return "unknown", visible(trial.says) or "not begun"
    if trial.state == "stopped":
        return "unknown", "stopped before its end"
    symptom, was = stands.replay.symptom, document.get("symptom_was")
    if was == "shown":
        return "bad", f"{symptom} seen"
    if was in _SHOWN:
        return _SHOWN[was], _NO.get(symptom, "not seen") if was == "not shown" else was
    after = {"wedged": ("bad", "wedged at its end"), "down": ("bad", "down at its end")}
    return after.get(trial.after, ("unknown", "not judged yet"))


def _bundles(trial: ReplayTrial) -> Iterator[tuple[str, int]]:
    for when in ("before", "during", "after"):
        if bundle_id := getattr(trial, f"bundle_{when}_id"):
            yield when, bundle_id


def _seconds(value: float | None) -> str:
    return _NONE if value is None else span(value)


def _by_side(stands: Standing) -> list[list[ReplayTrial]]:
    sides = dict.fromkeys(one.side for one in stands.trials)
    return [[one for one in stands.trials if one.side == side] for side in sides]


def _error(session: Session, stands: Standing, error: ErrorClass) -> ErrorRow:
    first = first_failed(session, stands.id, error)
    died = any(one.died for one in stands.trials if one.errors.get(error))
    level = level_of(error)
    return ErrorRow(
        error=error,
        level=level,
        name=name_of(error),
        counts=[
            ", ".join(number(int(one.errors.get(error) or 0)) for one in mine)
            for mine in _by_side(stands)
        ],
        recorded=_recorded(stands.dump, error),
        first_trial=first.trial if first else None,
        first_index=first.position if first else None,
        reading=reading(error, died=died, as_recorded=stands.options.as_recorded),
        bad=level == "bad" and died,
    )


def _recorded(dump: Dump | None, error: ErrorClass) -> str:
    """What the recording has of the kind; it tells no class of failures but these."""
    if dump is None:
        return "not known"
    if error == "aborted":
        return f"{number(dump.aborted or 0)} aborted"
    if error in _LOST_OR_SILENT:
        return f"{number(dump.unfinished or 0)} unfinished"
    return _NONE
