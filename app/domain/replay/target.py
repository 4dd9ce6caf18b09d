"""What a bundle says of the target that a replay is to go to, before it and after it."""

from collections.abc import Mapping
from typing import Any, Literal

from app.domain.health import health_facts, verdict_of
from app.domain.health_table import Reach, Verdict
from app.domain.loads import Loads
from app.domain.observed import Observed, model
from app.domain.replay.died import After
from app.domain.replay.options import TargetFacts
from app.domain.replay.symptoms import Sameness
from app.domain.server_info import topology

_STATES: Mapping[str, After] = {
    Verdict.HEALTHY: "up",
    Verdict.BUSY: "up",
    Verdict.FALSE_RED: "up",
    Verdict.WEDGED: "wedged",
    Verdict.FALSE_GREEN: "wedged",
    Verdict.GONE: "down",
}
_FRONTENDS: Mapping[str, Literal["python", "rust"]] = {"python": "python", "rust": "rust"}
_SIZES = ("tp_size", "dp_size", "pp_size", "ep_size")


def facts_of(seen: Observed) -> TargetFacts:
    """What decides which requests it takes; what no endpoint told stays unknown."""
    told = topology(seen.info)
    return TargetFacts(
        version=seen.version,
        frontend=_FRONTENDS.get(seen.frontend),
        is_generation=model(seen)["is_generation"],
        disaggregation=told["disaggregation_mode"],
    )


def loads_of(seen: Observed) -> Loads | None:
    """Its last answer about its load; None where it gave none."""
    return seen.load


def state_of(seen: Observed) -> After:
    """How it was found. A verdict that says neither is never "up": it may just answer."""
    verdict = verdict_of(seen).verdict
    if verdict == Verdict.UNKNOWN and _answers(seen):
        return "answers"
    return _STATES.get(verdict, "unknown")


def _answers(seen: Observed) -> bool:
    """Whether a process answers that is not on its way out, with a scheduler that is not silent."""
    facts = health_facts(seen)
    alive = facts.reach is Reach.ANSWERS and not facts.refuses_at_once
    return alive and facts.scheduler_silent is not True


def sameness(seen: Observed, recorded: Mapping[str, Any]) -> Sameness:
    """Whether it is what was *recorded*, a document of ``dump summarize``.

    A dump tells nothing of the accelerator, so that stays unknown.
    """
    sizes, was = topology(seen.info), recorded.get("topology") or {}
    both = [(was.get(name), sizes[name]) for name in _SIZES]
    known = [(one, other) for one, other in both if one is not None and other is not None]
    return Sameness(
        model=_same(recorded.get("model_path"), model(seen)["model_path"]),
        topology=all(one == other for one, other in known) if known else None,
    )


def as_json(seen: Observed) -> dict[str, Any]:
    """The target as the document of a replay names it."""
    return {
        "base_url": seen.bundle.base_url,
        "version": seen.version,
        "frontend": seen.frontend,
        "model_path": model(seen)["model_path"],
        "topology": topology(seen.info),
        "verdict_before": verdict_of(seen).verdict,
    }


def _same(one: str | None, other: str | None) -> bool | None:
    return None if one is None or other is None else one == other
