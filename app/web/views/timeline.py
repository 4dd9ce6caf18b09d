"""The timeline as it is read: moments, runs of system events folded, the onset in its place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import ClassVar, Literal, Self

from app.store.tables import Incident
from app.store.timeline import Moment
from app.web.views.base import Fragment

Part = Literal["first", "older", "newer"]  # of a timeline that is read piece by piece

WINDOW = 40  # moments on the page at first, and in each older part


@dataclass(frozen=True)
class Fold:
    """A run of system events, closed until somebody opens it."""

    moments: Sequence[Moment]

    @property
    def since(self) -> datetime:
        return self.moments[-1].occurred_at

    @property
    def until(self) -> datetime:
        return self.moments[0].occurred_at


@dataclass(frozen=True)
class Onset:
    """When it began, as whoever opened the incident knew it."""

    at: datetime
    by: str


@dataclass(frozen=True)
class Line:
    """One line: a moment, a fold or the onset; the other two are None."""

    moment: Moment | None = None
    fold: Fold | None = None
    onset: Onset | None = None


@dataclass(frozen=True)
class Story:
    """A part of the timeline, newest first."""

    incident: Incident
    pins: Sequence[Moment]
    lines: Sequence[Line]
    newest_id: int  # what comes later than this is asked for
    older_than: int | None  # the oldest moment shown, when there are older ones
    hidden: int
    shows_all: bool

    @classmethod
    def of(
        cls,
        incident: Incident,
        moments: Sequence[Moment],
        pins: Sequence[Moment] = (),
        *,
        newest_id: int = 0,
        shows_all: bool = False,
        part: Part = "first",
    ) -> Self:
        """Up to WINDOW of *moments*; one more than that tells that there are older ones."""
        more = len(moments) > WINDOW
        window = moments[:WINDOW]
        shown = [one for one in window if not one.pinned]  # pins stand above
        lines = [Line(moment=one) for one in shown] if shows_all else list(_folded(shown))
        return cls(
            incident=incident,
            pins=pins,
            lines=lines if part == "newer" else _with_onset(lines, incident, more=more, part=part),
            newest_id=newest_id,
            older_than=window[-1].id if more else None,
            hidden=sum(len(line.fold.moments) for line in lines if line.fold),
            shows_all=shows_all,
        )


def _folded(moments: Iterable[Moment]) -> Iterable[Line]:
    for system, run in groupby(moments, key=lambda one: one.system):
        if system:
            yield Line(fold=Fold(tuple(run)))
        else:
            yield from (Line(moment=one) for one in run)


def _with_onset(lines: Sequence[Line], incident: Incident, *, more: bool, part: Part) -> list[Line]:
    """The onset between its neighbours; left out where it lies in a part not shown."""
    onset = incident.started_at
    place = next((i for i, line in enumerate(lines) if onset and _at(line) < onset), len(lines))
    outside = (place == len(lines) and more) or (place == 0 and part == "older")
    if onset is None or outside:
        return list(lines)
    return [*lines[:place], Line(onset=Onset(onset, incident.opened_by)), *lines[place:]]


def _at(line: Line) -> datetime:
    if line.moment:
        return line.moment.occurred_at
    assert line.fold is not None
    return line.fold.until


@dataclass(frozen=True)
class NewerFragment(Fragment):
    """What happened since; its first line asks again."""

    template: ClassVar[str] = "incidents/_newer.html"
    incident: Incident
    story: Story
    now: datetime
    may_act: bool


@dataclass(frozen=True)
class OlderFragment(Fragment):
    """What happened before; its last line offers the part before that."""

    template: ClassVar[str] = "incidents/_older.html"
    incident: Incident
    story: Story
    now: datetime
    may_act: bool
