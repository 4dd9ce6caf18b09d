"""What the page of chosen requests is given, and that of two dumps beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from app.web.views.base import Page
from app.web.views.dump_requests import Fact, RequestTold
from app.web.views.dumps import DumpTold


@dataclass(frozen=True)
class NoChoice:
    """Why an expression means nothing."""

    what: str
    why: str | None
    fix: str | None


@dataclass(frozen=True)
class ChosenTold:
    """What a choice comes to."""

    total: int
    states: Mapping[str, int]
    prompt_tokens: int | None
    prompts_told: int
    rows: Sequence[RequestTold]  # the first ones
    may_download: bool  # not too many at once


@dataclass(frozen=True)
class ChoicePage(Page):
    """Chosen requests, and what can be done with them. *chosen* None: nothing is chosen yet."""

    template: ClassVar[str] = "dumps/choice.html"
    dump: DumpTold
    finding: str
    select: str
    wrong: NoChoice | None
    chosen: ChosenTold | None
    command: str


@dataclass(frozen=True)
class SharedTold:
    """One request that is in both dumps."""

    rid: str
    one: RequestTold
    other: RequestTold


@dataclass(frozen=True)
class Beside:
    """A fact of both dumps. *differs*: it is known of both and not the same."""

    name: str
    one: Fact
    other: Fact
    differs: bool


@dataclass(frozen=True)
class ComparisonPage(Page):
    """Two dumps and the requests in both. *shared* None: not counted, as they are too large."""

    template: ClassVar[str] = "dumps/comparison.html"
    one: DumpTold
    other: DumpTold
    finding: str
    facts: Sequence[Beside]
    both_unfinished: Sequence[SharedTold]
    more_unfinished: bool
    shared: int | None
    rows: Sequence[SharedTold]
    following: str | None
