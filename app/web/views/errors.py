"""What an error looks like, as a page and as a notice inside one."""

from dataclasses import dataclass

from app.web.views.base import Fragment, Page


@dataclass(frozen=True)
class Trouble:
    """What happened, why, how to fix it, and how to run it yourself; the last three may miss."""

    status: int
    what: str
    why: str | None = None
    fix: str | None = None
    command: str | None = None
    sign_in: str | None = None  # where to sign in, if that is the remedy
    request_id: str | None = None  # names the log lines, where the page itself must not tell


@dataclass(frozen=True)
class ErrorPage(Page):
    template = "errors/page.html"

    trouble: Trouble


@dataclass(frozen=True)
class ErrorNotice(Fragment):
    """Lands in the page's ``#notice``."""

    template = "errors/_notice.html"

    trouble: Trouble
