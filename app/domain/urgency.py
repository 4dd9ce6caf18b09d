"""How urgent an incident is, and what its list line says: read off its newest summaries.

Nothing here is quieter than its evidence: what is not known ranks above what is slow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from app.domain.diagnosis import diagnose
from app.domain.findings import Finding, claims_of, is_failing
from app.domain.two_bundles import between_bundles

Summary = Mapping[str, Any]  # interface §2, ``bundle summarize --json``

DEAD = frozenset({"wedged", "gone", "false green"})
SERVING = frozenset({"healthy", "busy"})
VERDICT = "verdict"  # id of the claim that only repeats the verdict
STOOD_STILL = "wedged-between-bundles"
_TROUBLE = frozenset({"false red", "starting"})
_LEVELS = ("bad", "warn", "note")
_STATUSES = ("established", "supported", "hypothesis", "unknown")
_FINDINGS = {
    "wedged": "{} is stuck: work is there and nothing moves",
    "gone": "{} is gone: nothing listens there",
    "false green": "{} shows green and does not serve",
    "false red": "{} shows red and serves",
    "starting": "{} is still starting",
    "busy": "{} serves, and requests wait",
    "healthy": "{} serves",
}


class Rank(IntEnum):
    """Order of the incident list."""

    FAILING = 0
    UNKNOWN = 1
    SLOW = 2
    QUIET = 3
    RESOLVED = 9


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an incident's evidence says of it now. ``about`` is the bundle that speaks for it.

    *looked*: stacks or coredumps say more than that bundle, and what they say is the strongest.
    """

    about: Summary | None
    verdict: str
    rank: Rank
    strongest: dict[str, Any] | None
    problem_class: str | None
    next_steps: list[dict[str, Any]]
    looked: bool = False


def judge(
    newest: Sequence[Summary], before: Sequence[Summary] = (), findings: Sequence[Finding] = ()
) -> Judgement:
    """The judgement over the *newest* summary of each address; *before* are those before them.

    *findings* are what looks into the hosts show that still hold. The address that is worst off
    speaks for the incident: a healthy one hides nothing. Two bundles between which work stood
    still are a wedge, whatever the newer one says alone; so are stacks that stand still.
    """
    about = min(newest, key=rank_of, default=None)
    recent = sorted([*newest, *before], key=lambda one: str(one.get("collected_at")), reverse=True)
    still = next((one for one in between_bundles(recent) if one["id"] == STOOD_STILL), None)
    found = diagnose(recent if still else newest, findings)
    looked = is_failing(findings)
    wedged = still is not None or any(one["wedged"] for one in findings)
    return Judgement(
        about=about,
        verdict="wedged" if wedged else verdict_of(about),
        rank=Rank.FAILING if wedged or looked else rank_of(about),
        strongest=found["strongest_signal"] or _to_show(about, findings),
        problem_class=found["problem_class"],
        next_steps=list(found["next_steps"]) if newest or findings else [],
        looked=looked,
    )


def _to_show(about: Summary | None, findings: Sequence[Finding]) -> dict[str, Any] | None:
    """The claim to show where none tells much."""
    seen = {"signals": claims_of(findings)}
    return strongest(about) or _verdict_claim(about) or strongest(seen)


def verdict_of(summary: Summary | None) -> str:
    """The health verdict of a bundle; ``unknown`` where there is none."""
    health = (summary or {}).get("health") or {}
    return str(health.get("verdict") or "unknown")


def rank_of(summary: Summary | None) -> Rank:
    """How an open incident ranks by one bundle; None is no evidence at all."""
    verdict = verdict_of(summary)
    if verdict in DEAD:
        return Rank.FAILING
    if verdict in _TROUBLE:
        return Rank.SLOW
    if verdict not in SERVING:
        return Rank.UNKNOWN
    return Rank.SLOW if _trouble(summary) else Rank.QUIET


def serves_well(summary: Summary | None) -> bool:
    """Whether later bundles may be compared with this one: it served, and no rule objected.

    A bundle taken in the middle of an incident is not what "healthy" looks like, though the
    server answered.
    """
    return rank_of(summary) is Rank.QUIET


def strongest(summary: Summary | None) -> dict[str, Any] | None:
    """The claim to show first: the worst level, then the most evidence, then the rules' order."""
    claims: Iterable[dict[str, Any]] = (summary or {}).get("signals") or ()
    return min(claims, key=_weight, default=None)


def _verdict_claim(summary: Summary | None) -> dict[str, Any] | None:
    """The verdict itself as a claim, where no rule has anything to say."""
    says = ((summary or {}).get("health") or {}).get("says")
    if not says:
        return None
    status = "unknown" if verdict_of(summary) == "unknown" else "established"
    return {"id": VERDICT, "says": says, "status": status, "level": "note", "evidence": []}


def finding(summary: Summary, target: str, verdict: str | None = None) -> str:
    """The title of a page about *target*: its verdict in words, or what is wrong beside it."""
    verdict = verdict or verdict_of(summary)
    trouble = _trouble(summary) if verdict in SERVING else None
    if trouble:
        return str(trouble["says"]).rstrip(".")
    return _FINDINGS.get(verdict, "It is not known whether {} serves").format(target)


def _trouble(summary: Summary | None) -> Mapping[str, Any] | None:
    """What is wrong with a server that serves; None where no telling rule found anything."""
    claim: Mapping[str, Any] | None = (summary or {}).get("strongest_signal")
    return claim if claim and claim.get("level") in ("bad", "warn") else None


def _weight(claim: Mapping[str, Any]) -> tuple[int, int]:
    return (
        _place(_LEVELS, claim.get("level", "note")),
        _place(_STATUSES, claim.get("status", "unknown")),
    )


def _place(order: tuple[str, ...], word: object) -> int:
    return order.index(word) if isinstance(word, str) and word in order else len(order)
