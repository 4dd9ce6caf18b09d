"""What the page of all replays is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from app.web.views.base import Page
from app.web.views.replay_form import ReplayLine


@dataclass(frozen=True)
class ReplayRow:
    """A replay in the list of all of them. *is_open*: at work, or it waits for a person."""

    line: ReplayLine
    incident_id: int
    incident_title: str
    is_open: bool


@dataclass(frozen=True)
class ReplaysPage(Page):
    """Newest first; *older_than* is the last one shown where there are older ones."""

    template: ClassVar[str] = "replays/list.html"
    rows: Sequence[ReplayRow]
    finding: str
    still_open: int  # of those shown
    older_than: int | None
    is_newest: bool
    may_act: bool
    now: datetime
