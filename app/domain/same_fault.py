"""The same fault in other incidents: what may be said of it, and no more.

A fingerprint is made of kernel, exception and architecture. Two causes may end in one kernel, so
an equal one is a lead into what was learnt then, and no diagnosis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.report_parts import rfc3339

SAYS = "The same kernel, exception and GPU architecture, which does not prove the same cause."


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An incident that has a coredump with that fingerprint; *diagnostic_id* took the newest."""

    incident_id: int
    diagnostic_id: int
    title: str
    opened_at: datetime
    problem_class: str | None
    state: str
    ended_at: datetime | None  # resolved, or mitigated; None: it goes on
    earlier: bool  # than the incident that is looked at

    @property
    def ending(self) -> str:
        """``resolved``, ``mitigated``, ``acknowledged, not over``."""
        return self.state if self.ended_at else f"{self.state}, not over"

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.incident_id,
            "diagnostic_id": self.diagnostic_id,
            "title": self.title,
            "opened_at": rfc3339(self.opened_at),
            "problem_class": self.problem_class,
            "state": self.state,
            "ended_at": rfc3339(self.ended_at) if self.ended_at else None,
            "earlier": self.earlier,
        }


@dataclass(frozen=True, slots=True)
class SameFault:
    """Where else one fingerprint was seen, the newest first; *more* are not listed."""

    fingerprint: str
    incidents: Sequence[Elsewhere]
    more: int

    def as_json(self) -> dict[str, Any]:
        return {
            "fingerprint": self.fingerprint,
            "says": SAYS,
            "incidents": [one.as_json() for one in self.incidents],
            "more": self.more,
        }


def heading(faults: Sequence[SameFault]) -> str:
    """``The same fault is in incident 12``; of several only how many."""
    numbers = {one.incident_id for fault in faults for one in fault.incidents}
    if len(numbers) == 1 and not any(fault.more for fault in faults):
        return f"The same fault is in incident {numbers.pop()}"
    at_least = "at least " if len(faults) > 1 and any(fault.more for fault in faults) else ""
    count = len(numbers) + max((fault.more for fault in faults), default=0)
    return f"The same fault is in {at_least}{count} other incidents"
