"""What the pages about targets are given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from app.domain.urgency import DEAD, SERVING
from app.store.tables import BundleRow, Incident, Target
from app.store.target_servers import LinkedServer, Proposal
from app.web.views.base import Page
from app.web.views.recordings import RecordingTold


def level_of(verdict: str | None) -> str:
    """The mark of a health verdict."""
    if verdict in DEAD:
        return "bad"
    if verdict in SERVING:
        return "good"
    return "warn" if verdict in ("false red", "starting") else "unknown"


@dataclass(frozen=True)
class Seen:
    """What was last seen of a target. Nothing here is newer than its age."""

    verdict: str
    level: str
    at: datetime | None  # None: no bundle was ever collected
    age: timedelta | None
    setup: str
    checked: str  # how the last check of the connection ended; empty without one
    checked_at: datetime | None
    answers: bool

    @classmethod
    def of(cls, target: Target, now: datetime) -> Self:
        """As it stands on the row of *target*."""
        seen: dict[str, Any] = target.seen or {}
        at = datetime.fromisoformat(seen["at"]) if seen.get("at") else None
        checked_at = datetime.fromisoformat(seen["checked_at"]) if "checked_at" in seen else None
        version = seen.get("version")
        told = [seen.get("model"), seen.get("topology"), f"sglang {version}" if version else None]
        return cls(
            verdict=seen.get("verdict") or "never asked",
            level=level_of(seen.get("verdict")),
            at=at,
            age=now - at if at else None,
            setup=" · ".join(str(word) for word in told if word),
            checked=seen.get("checked") or "",
            checked_at=checked_at,
            answers=bool(seen.get("answers")),
        )


@dataclass(frozen=True)
class TargetRow:
    target: Target
    seen: Seen


@dataclass(frozen=True)
class TargetsPage(Page):
    template: ClassVar[str] = "targets/list.html"
    rows: Sequence[TargetRow]
    finding: str
    now: datetime


@dataclass(frozen=True)
class TargetPage(Page):
    template: ClassVar[str] = "targets/page.html"
    target: Target
    seen: Seen
    header_names: Sequence[str]
    bundles: Sequence[BundleRow]
    incidents: Sequence[Incident]
    linked: Sequence[LinkedServer]
    proposed: Sequence[Proposal]  # on its port, not linked yet
    others: Sequence[Proposal]  # what else is seen on known hosts
    recording: RecordingTold | None  # what may be on there
    now: datetime


@dataclass(frozen=True)
class TargetForm(Page):
    """Registering or editing; secrets are never shown again, only that there is one."""

    template: ClassVar[str] = "targets/form.html"
    target: Target | None  # None while it is new
    header_names: Sequence[str]
    labels: str
