"""What the pages of a report are given: the seven fields, entry by entry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from app.domain.claims import ProblemClass, Status
from app.domain.report_entries import FIELDS, Entry
from app.web.chips import Chip
from app.web.formats import visible
from app.web.views.base import Fragment, Page
from app.web.views.same_faults import SameFaultsTold

ChipOf = Callable[[Mapping[str, Any]], Chip]

STATUSES = (Status.HYPOTHESIS, Status.SUPPORTED, Status.ESTABLISHED, Status.UNKNOWN)
LEADING = ("problem_class", "strongest_signal")  # their first sentence is what is read first
CLASSES = ("not decided", *ProblemClass)


class AnyEntry(Protocol):
    """What a field asks of its entries, here and in a share."""

    @property
    def status(self) -> str: ...
    @property
    def telling(self) -> bool: ...
    @property
    def struck(self) -> object: ...


EntryT = TypeVar("EntryT", bound=AnyEntry)


@dataclass(frozen=True)
class ReportField(Generic[EntryT]):
    """One of the seven fields with what stands in it."""

    name: str
    title: str
    entries: Sequence[EntryT]

    @property
    def leads(self) -> bool:
        return self.name in LEADING

    @property
    def open(self) -> bool:
        """Whether nothing that stands here is known."""
        return all(entry.status == "unknown" for entry in self.entries if not entry.struck)

    @property
    def quiet(self) -> int:
        """How many checks found nothing or could not run."""
        return sum(not entry.telling for entry in self.entries)


@dataclass(frozen=True)
class StrikeTold:
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True)
class EntryTold:
    """One claim of a field. ``by`` is None for what a rule says."""

    key: str
    what: str | None  # of a check: the rule that looked
    says: str
    status: str
    telling: bool
    why: str | None
    risk: str | None
    by: str | None
    written_at: datetime | None
    struck: StrikeTold | None
    chips: Sequence[Chip]

    @classmethod
    def of(cls, entry: Entry, chip_of: ChipOf) -> Self:
        strike = entry["struck"]
        return cls(
            key=entry["key"],
            what=_shown(entry["what"]),
            says=visible(entry["says"]),
            telling=entry["telling"],
            status=entry["status"],
            why=_shown(entry["why"]),
            risk=_shown(entry["risk"]),
            by=_shown(entry["by"]),
            written_at=moment(entry["written_at"]),
            struck=_struck(strike) if strike else None,
            chips=[chip_of(one) for one in entry["evidence"]],
        )

    @property
    def may_be_struck(self) -> bool:
        """A choice of class is changed by another choice, and what is not decided by evidence."""
        return self.struck is None and not self.key.startswith("problem-class")


class FieldTold(ReportField[EntryTold]):
    """A field of the living report."""

    @classmethod
    def of(cls, name: str, entries: Sequence[Entry], chip_of: ChipOf) -> Self:
        return cls(name, FIELDS[name], [EntryTold.of(one, chip_of) for one in entries])


@dataclass(frozen=True)
class ReportTold:
    """The report as its page shows it."""

    number: int
    title: str
    severity: str | None
    state: str
    targets: str
    started_at: datetime | None
    opened_at: datetime | None
    resolved_at: datetime | None
    revision: int
    generated_at: datetime | None
    inputs: Sequence[tuple[Chip, str, datetime | None]]
    unrecognised: Sequence[str]
    fields: Sequence[FieldTold]

    @classmethod
    def of(cls, document: Mapping[str, Any], chip_of: ChipOf) -> Self:
        incident = document["incident"]
        return cls(
            number=incident["number"],
            title=visible(incident["title"]),
            severity=incident["severity"],
            state=incident["state"],
            targets=visible(", ".join(incident["targets"])) or "no target",
            revision=document["revision"],
            generated_at=moment(document["generated_at"]),
            inputs=[
                (chip_of(one), visible(one["path"]), moment(one["collected_at"]))
                for one in document["inputs"]
            ],
            unrecognised=[visible(name) for name in document["unrecognised"]],
            fields=[
                FieldTold(
                    name, title, [EntryTold.of(one, chip_of) for one in document["fields"][name]]
                )
                for name, title in FIELDS.items()
            ],
            **{name: moment(incident[name]) for name in ("started_at", "opened_at", "resolved_at")},
        )

    def field(self, name: str) -> FieldTold:
        return next(one for one in self.fields if one.name == name)


@dataclass(frozen=True)
class Drafted:
    """What a person has typed into the form of a field; empty at first."""

    field: str
    says: str = ""
    status: str = Status.HYPOTHESIS
    evidence: str = ""
    problem_class: str = CLASSES[0]


@dataclass(frozen=True)
class ReportPage(Page):
    """The report, one field of it open for editing at most."""

    template: ClassVar[str] = "reports/page.html"
    report: ReportTold
    drafted: Drafted | None
    same_faults: SameFaultsTold
    statuses: Sequence[str] = STATUSES
    classes: Sequence[str] = CLASSES


@dataclass(frozen=True)
class Clash(Fragment):
    """Two people wrote at once: what one typed, beside what stands there now."""

    template: ClassVar[str] = "reports/_clash.html"
    report: ReportTold
    drafted: Drafted
    statuses: Sequence[str] = STATUSES
    classes: Sequence[str] = CLASSES


@dataclass(frozen=True)
class ClashPage(Page):
    template: ClassVar[str] = "reports/clash.html"
    report: ReportTold
    drafted: Drafted
    statuses: Sequence[str] = STATUSES
    classes: Sequence[str] = CLASSES


def moment(text: str | None) -> datetime | None:
    """The time that a report or a share tells as RFC 3339."""
    return datetime.fromisoformat(text) if text else None


def _shown(text: str | None) -> str | None:
    return visible(text) if text else None


def _struck(strike: Mapping[str, str]) -> StrikeTold:
    return StrikeTold(
        visible(strike["reason"]), visible(strike["by"]), datetime.fromisoformat(strike["at"])
    )
