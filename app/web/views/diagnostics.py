"""What the page of a diagnostic is given: what was read of whom, and what was refused and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from app.domain.ladder import rung_of
from app.store.tables import Diagnostic, DiagnosticItem
from app.web.formats import visible
from app.web.views.base import Fragment, Page
from app.web.views.diagnostic_finding import finding, so_far
from app.web.views.found import Found
from app.web.views.jobs import Following, JobTold


@dataclass(frozen=True)
class DiagnosticTold:
    """A diagnostic as its page tells of it."""

    id: int
    kind: str
    name: str
    state: str
    finding: str
    so_far: str
    says: str
    incident_id: int
    target: str | None
    target_id: int | None
    hosts: Sequence[tuple[int, str]]
    asked_by: str
    asked_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, row: Diagnostic, items: Sequence[DiagnosticItem], target: str | None) -> Self:
        """What is told of *row* and what it brought so far."""
        assert row.id is not None
        rung = rung_of(row.kind)
        return cls(
            id=row.id,
            kind=row.kind,
            name=rung.name if rung else row.kind.capitalize(),
            state=row.state,
            finding=finding(row, items),
            so_far=so_far(row, items),
            says=visible(row.says),
            incident_id=row.incident_id,
            target=target,
            target_id=row.target_id,
            hosts=[(one["host_id"], str(one["name"])) for one in row.hosts],
            asked_by=row.asked_by,
            asked_at=row.asked_at,
            finished_at=row.finished_at,
        )


@dataclass(frozen=True)
class DiagnosticPage(Page):
    """One look into processes or hosts."""

    template: ClassVar[str] = "diagnostics/page.html"
    diagnostic: DiagnosticTold
    found: Found
    live: bool
    job: JobTold | None
    following: Following
    may_act: bool
    names_tab: bool
    now: datetime


@dataclass(frozen=True)
class DiagnosticFound(Fragment):
    """What it brought so far; asks for itself while more may come."""

    template: ClassVar[str] = "diagnostics/_found.html"
    diagnostic: DiagnosticTold
    found: Found
    live: bool
    now: datetime
