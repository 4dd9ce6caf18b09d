"""What a rule comes back with: it claims, it stays quiet, or it could not look.

"Ruled out" is said only of rules that looked and stayed quiet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.domain.claims import Claim, Evidence
from app.domain.observed import Observed


@dataclass(frozen=True, slots=True)
class Quiet:
    """The rule had its evidence and found nothing; ``says`` gives the figures it looked at."""

    id: str
    says: str
    evidence: tuple[Evidence, ...] = ()
    rules_out: bool = True  # False: not enough to claim, and too much to exclude

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "says": self.says,
            "rules_out": self.rules_out,
            "evidence": [one.as_json() for one in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class NotChecked:
    """The rule lacked what it needs; ``why`` names it."""

    id: str
    why: str

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "why": self.why}


Ruling = Claim | Quiet | NotChecked
Rule = Callable[[Observed], Ruling]
