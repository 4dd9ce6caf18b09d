"""The audit log as a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.store.tables import AuditEvent
from app.web.views.base import Page


@dataclass(frozen=True)
class AuditPage(Page):
    template = "audit/page.html"

    events: Sequence[AuditEvent]  # newest first
    older_than: int | None  # the last line shown, if there are older ones
    is_newest: bool
