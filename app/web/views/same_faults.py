"""What a page is given of other incidents with the same fault."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.same_fault import SAYS, SameFault, heading


@dataclass(frozen=True)
class SameFaultsTold:
    """Other incidents, by fingerprint; only for people who are signed in."""

    faults: Sequence[SameFault]
    says: str = SAYS

    @property
    def heading(self) -> str:
        return heading(self.faults)

    def others(self, fingerprint: str | None) -> int:
        """How many other incidents have *fingerprint*."""
        found = [one for one in self.faults if one.fingerprint == fingerprint]
        return sum(len(one.incidents) + one.more for one in found)
