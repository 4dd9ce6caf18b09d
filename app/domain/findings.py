"""What one look into the hosts found, as an incident takes it in and keeps it: plain JSON.

It stands beside the summaries of bundles. A claim is never stronger than its ground, and the
verdict of a bundle is not touched: it says what the bundle shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.domain.claims import Claim, ProblemClass
from app.domain.ladder import Kind
from app.domain.places import Place

Finding = Mapping[str, Any]  # as ``Conclusion.as_json`` writes it

STANDSTILL = "stacks-standstill"
EXCEPTION = "gpu-exception"
_EXCLUDED_BY = {"gpu-no-exception": EXCEPTION}
# What says most, first; each is more telling than that work stood still between two bundles.
TELLING = (
    EXCEPTION,
    "rank-ended",
    "rank-stopped",
    "rank-divergence",
    "different-collectives",
    "nccl-rank-dead",
    "nccl-error",
    "nccl-rank-behind",
    "nccl-counts-differ",
    "ranks-symmetric",
    "gpu-places-differ",
    "replay-target-died",
    "replay-reproduced",
)


@dataclass(frozen=True, slots=True)
class Open:
    """What would settle what is left open; *rung* is of the evidence ladder, if one does it.

    *place* is where in the console it is done, if it is done there; *place_id* of which replay.
    """

    text: str
    why: str
    risk: str
    command: str | None = None
    rung: Kind | None = None
    place: Place | None = None
    place_id: int | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Claims of one look, and what follows from them for the incident.

    *wedged*: nothing moved for five seconds or more in a place that is not idle.
    """

    claims: tuple[Claim, ...]
    ruled_out: tuple[Claim, ...] = ()
    settles: tuple[Open, ...] = ()
    problem_class: ProblemClass | None = None
    wedged: bool = False
    ranks: int = 0  # how many it is about: a look at fewer replaces none at more

    def as_json(self) -> dict[str, Any]:
        return {
            "claims": [one.as_json() for one in self.claims],
            "ruled_out": [one.as_json() for one in self.ruled_out],
            "settles": [asdict(one) for one in self.settles],
            "problem_class": self.problem_class.value if self.problem_class else None,
            "wedged": self.wedged,
            "ranks": self.ranks,
        }


def claims_of(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Every claim of *findings*, in their order."""
    return [dict(claim) for one in findings for claim in one["claims"]]


def class_of(findings: Sequence[Finding]) -> ProblemClass | None:
    """The problem class that *findings* decide; a crash explains a hang."""
    decided = {one["problem_class"] for one in findings}
    for likely in (ProblemClass.CRASH, ProblemClass.HANG):
        if likely.value in decided:
            return likely
    return None


def ruled_out(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """What *findings* exclude, unless one of them says otherwise."""
    fired = {claim["id"] for claim in claims_of(findings)}
    hangs = any(one["problem_class"] == ProblemClass.HANG for one in findings)
    return [
        dict(claim)
        for one in findings
        for claim in one["ruled_out"]
        if _EXCLUDED_BY.get(claim["id"]) not in fired and not (hangs and claim["id"] == STANDSTILL)
    ]


def is_failing(findings: Sequence[Finding]) -> bool:
    """Whether any of them shows a server that cannot serve as it is."""
    return any(claim["level"] == "bad" for claim in claims_of(findings))
