"""What the page of one recorded request is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from app.web.views.base import Page
from app.web.views.dump_requests import Fact, RequestTold
from app.web.views.dumps import DumpTold


@dataclass(frozen=True)
class TextPart:
    """Some of what was asked or answered. *more* follows *shown*; *left_out* is in neither."""

    label: str
    shown: str
    more: str
    characters: int
    left_out: int


@dataclass(frozen=True)
class Unsealed:
    """Text that was opened for a reason, which stands in the audit log."""

    tier: str
    reason: str
    parts: Sequence[TextPart]


@dataclass(frozen=True)
class Elsewhere:
    """The same identifier in another dump of the incident."""

    dump_id: int
    dump_name: str
    request: RequestTold


@dataclass(frozen=True)
class RequestPage(Page):
    """One request: its shape, and its text for who unseals it. *why*: it is a suspect."""

    template: ClassVar[str] = "dumps/request.html"
    dump: DumpTold
    recorded: RequestTold
    finding: str
    why: str | None
    facts: Sequence[Fact]
    parameters: Sequence[Fact]
    problems: Sequence[str]
    around: Sequence[RequestTold]  # by arrival, with the request itself
    elsewhere: Sequence[Elsewhere]
    unsealed: Unsealed | None
