"""The document of ``replay --json``: what was sent, how it went, and what that says."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.domain.replay.latency import paired
from app.domain.replay.plan import Plan, as_json
from app.domain.replay.symptoms import Question, Sighting
from app.domain.replay.tally import LATENESS_BUDGET_MS, Tally, Trial
from app.domain.replay.verdict import Verdict

_MOST_INDEXES = 1000


def document(
    plan: Plan,
    trials: Sequence[Trial],
    judged: Verdict,
    question: Question,
    target: Mapping[str, Any],
) -> dict[str, Any]:
    """All of a replay. Its figures are those of the run that tells most: the first that showed the
    symptom, else the last; ``trials`` has every run's own. What was not measured is null.
    """
    told = _told(trials, judged)
    return {
        "requests": len(plan.schedule.slots),
        **_figures(told or Tally(0).trial()),
        "symptom": question.symptom,
        "verdict": judged.word,
        "why": judged.why,
        "status": judged.status.value,
        "trials": [
            {**_figures(trial), **_sighted(one)}
            for trial, one in zip(trials, judged.sightings, strict=True)
        ],
        "stripped": sorted(plan.stripped),
        "plan": as_json(plan),
        "target": target,
    }


def _told(trials: Sequence[Trial], judged: Verdict) -> Trial | None:
    shown = [
        trial for trial, one in zip(trials, judged.sightings, strict=True) if one.state == "shown"
    ]
    return shown[0] if shown else trials[-1] if trials else None


def _figures(trial: Trial) -> dict[str, Any]:
    died = None
    if trial.died is not None:
        died = {**asdict(trial.died), "says": trial.died.says}
    return {
        "sent": trial.sent,
        "completed": trial.completed,
        "errors": [
            {
                "class": one.error,
                "count": one.count,
                "own_making": one.own_making,
                "first_index": one.first_index,
                "example": one.example,
            }
            for one in trial.failures
        ],
        "recorded": trial.recorded,
        "replayed": {**trial.replayed, "tokens_per_second": trial.tokens_per_second},
        "ratio": {measure: paired(pairs) for measure, pairs in trial.pairs.items()},
        "cached_tokens": dict(
            zip(("recorded", "replayed", "of_prompt"), trial.cached_tokens, strict=True)
        ),
        "outputs": {like: len(indexes) for like, indexes in trial.likenesses.items()},
        "fidelity": {
            "lateness_ms": trial.lateness_ms,
            "lag_ms": trial.lag_ms,
            "budget_ms": LATENESS_BUDGET_MS,
            "valid": trial.valid,
        },
        "died": died,
        "after": trial.after,
    }


def _sighted(one: Sighting) -> dict[str, Any]:
    return {"symptom_was": one.state, "why": one.why, "indexes": one.indexes[:_MOST_INDEXES]}
