"""What views have in common. A test proves that each template uses exactly its view's fields."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from app.store.audit import Actor
from app.web.views.tab import icon_of_list


class View:
    """What one template is rendered from; a subclass is a frozen dataclass."""

    template: ClassVar[str]


class Fragment(View):
    """A part of a page with a URL of its own; its template has a leading underscore."""


@dataclass(frozen=True)
class Shell:
    """What stands around every page of a signed-in reader: masthead, clock, theme."""

    actor: Actor | None  # None on the pages of somebody who has not signed in
    failing: int  # open incidents that fail; shown in the masthead and the tab's title
    now: datetime
    theme: str  # "light", "dark" or "" for the system's own
    section: str = ""  # which masthead link is current

    @property
    def may_act(self) -> bool:
        """Whether buttons are shown: a reader looks, an operator acts."""
        return self.role in ("operator", "admin")

    @property
    def tab_icon(self) -> str:
        """The file in static/ for the icon of the browser's tab."""
        return icon_of_list(self.failing)

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"

    @property
    def role(self) -> str:
        return self.actor.role if self.actor else ""


@dataclass(frozen=True)
class Page(View):
    """A whole page: extends base.html, which shows the shell."""

    shell: Shell
