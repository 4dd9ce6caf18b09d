"""The incident list as it is shown: rows, tabs, headline and what the headline rests on."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from app.domain.claims import ProblemClass
from app.domain.urgency import SERVING, Rank
from app.store.incident_list import Counts, KnownTarget
from app.store.tables import Incident
from app.web.views.base import Fragment, Page

DEFAULT_TAB = "open"
MOST_NAMES = 4  # of failing targets in one line
_LEVELS = {Rank.FAILING: "bad", Rank.UNKNOWN: "unknown", Rank.SLOW: "warn"}


def level_of(incident: Incident) -> str:
    """The mark of an incident: by its rank, and good only where it is known to serve."""
    if incident.rank in _LEVELS:
        return _LEVELS[Rank(incident.rank)]
    return "good" if incident.verdict in SERVING and incident.state != "resolved" else "quiet"


def health_told(incident: Incident) -> str:
    """The verdict in one word; a server that serves with something wrong is not just healthy."""
    if incident.verdict in SERVING and incident.rank <= Rank.SLOW:
        return "slow" if incident.problem_class == ProblemClass.LATENCY else "serves, with trouble"
    return incident.verdict or "no bundle yet"


@dataclass(frozen=True)
class Asked:
    """What the URL of the list asks for."""

    tab: str = DEFAULT_TAB
    text: str = ""
    after: str = ""  # cursor of the page before; empty on the first page

    def query(self, **other: str) -> str:
        """``?state=mine&q=gpu``: the URL's query with *other* in place of what it names."""
        given = {"state": self.tab, "q": self.text, "after": self.after, **other}
        if given["state"] == DEFAULT_TAB:
            given.pop("state")
        told = urlencode({name: value for name, value in given.items() if value})
        return f"?{told}" if told else ""


@dataclass(frozen=True)
class ListRow:
    """One line of the list."""

    incident: Incident
    level: str
    health: str  # the verdict, or that nothing was asked
    age: timedelta  # since the onset, or since it was opened
    setup: str  # of its only target, as last seen: "Qwen3-235B · TP8"
    quiet: bool

    @classmethod
    def of(cls, incident: Incident, seen: Mapping[str, Any] | None, now: datetime) -> Self:
        """*incident* with what was last *seen* of its target, if it has a single one."""
        told = [(seen or {}).get(name) for name in ("model", "topology")]
        return cls(
            incident=incident,
            level=level_of(incident),
            health=health_told(incident),
            age=(incident.resolved_at or now) - (incident.started_at or incident.opened_at),
            setup=" · ".join(str(word) for word in told if word),
            quiet=incident.rank >= Rank.QUIET,
        )

    @property
    def signal(self) -> str:
        """The strongest signal, or the title while there is none."""
        return str((self.incident.headline or {}).get("says") or self.incident.title)

    @property
    def proof(self) -> str | None:
        return (self.incident.headline or {}).get("status")

    @property
    def code(self) -> str:
        """Four digits that differ once the incident changed."""
        told = f"{self.incident.id} {self.incident.changed_at.isoformat()}".encode()
        return f"{zlib.crc32(told) & 0xFFFF:04x}"


def mark_of(rows: Sequence[ListRow], now: datetime) -> str:
    """What stands on a list, so that a later look can tell what changed, ages included."""
    return f"{now:%H%M}" + "".join(row.code for row in rows)


def changed_since(mark: str, rows: Sequence[ListRow]) -> int:
    """How many rows are new or other than when *mark* was made, or went away."""
    before = {mark[place : place + 4] for place in range(4, len(mark), 4)}
    now = {row.code for row in rows}
    return max(len(now - before), len(before - now))


@dataclass(frozen=True)
class Tab:
    """One tab with its count."""

    name: str
    count: int
    current: bool

    @property
    def label(self) -> str:
        return self.name.capitalize()


@dataclass(frozen=True)
class Headline:
    """The finding of the list, and what it rests on."""

    says: str
    failing: str  # names of the targets that do not serve
    slow: int
    unknown: int
    targets: int
    served: int  # when last asked
    never_asked: int
    oldest: timedelta | None  # age of the oldest answer; None without any

    @classmethod
    def of(cls, counts: Counts, targets: Sequence[KnownTarget], now: datetime) -> Self:
        """The headline at *now*; it claims nothing of targets that were never asked."""
        seen: list[dict[str, Any]] = [
            one.seen for one in targets if one.seen and one.seen.get("verdict")
        ]
        names = [one.name for one in targets if one.failing]
        return cls(
            says=_finding(counts, len(names)),
            failing=_listed(names),
            slow=counts.ranks.get(Rank.SLOW, 0),
            unknown=counts.ranks.get(Rank.UNKNOWN, 0),
            targets=len(targets),
            served=sum(one["verdict"] in SERVING for one in seen),
            never_asked=len(targets) - len(seen),
            oldest=max((now - datetime.fromisoformat(one["at"]) for one in seen), default=None),
        )


def _finding(counts: Counts, failing_targets: int) -> str:
    failing = counts.failing
    if failing_targets:
        return f"{failing_targets} target{_does(failing_targets)} not serve"
    if failing:
        return f"{failing} incident{'s fail' if failing > 1 else ' fails'}"
    unknown, count = counts.ranks.get(Rank.UNKNOWN, 0), counts.tabs["open"]
    if unknown:
        return (
            f"{unknown} of {count} open incidents {'are' if unknown > 1 else 'is'} not understood"
        )
    if count:
        return f"{count} open incident{'s, none' if count > 1 else ', which'} fails"
    return "No open incident"


def _does(count: int) -> str:
    return "s do" if count > 1 else " does"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    told = ", ".join(names[:MOST_NAMES])
    return f"{told} and {more} more" if more > 0 else told


@dataclass(frozen=True)
class ListFragment(Fragment):
    """The whole of the list. It asks for itself while no hand is on it."""

    template: ClassVar[str] = "incidents/_incidents.html"
    headline: Headline
    tabs: Sequence[Tab]
    rows: Sequence[ListRow]
    now: datetime
    asked: Asked
    next_cursor: str | None
    mark: str
    changed: int  # 0 when it is drawn; see ChangedFragment
    may_act: bool
    tab_title: str | None  # for the browser's tab when the fragment comes alone
    tab_icon: str


@dataclass(frozen=True)
class ListPage(Page):
    """The list in its page."""

    template: ClassVar[str] = "incidents/list.html"
    headline: Headline
    tabs: Sequence[Tab]
    rows: Sequence[ListRow]
    now: datetime
    asked: Asked
    next_cursor: str | None
    mark: str
    changed: int
    may_act: bool
    tab_title: str | None
    tab_icon: str


@dataclass(frozen=True)
class ChangedFragment(Fragment):
    """How many rows changed since the list was drawn, told while a hand is on it."""

    template: ClassVar[str] = "incidents/_changed.html"
    changed: int
    asked: Asked
    mark: str
