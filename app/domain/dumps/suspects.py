"""Which requests to look at first, and why: works on rows alone, in one pass, of any number.

A request dump has finished requests only, so nothing in it can be called the trigger of anything.
In a crash dump the server died with some requests unfinished: one of these may be. It is called
the likely trigger only where it is the only one left, or sets itself apart from all the others.
"""

from collections.abc import Iterable
from heapq import nlargest
from typing import Literal, NotRequired, TypedDict

from app.domain.dumps.oddities import Oddities
from app.domain.dumps.recorded import Kind, Row

LAST_ARRIVALS = 5
_MOST_UNFINISHED = 100
_MOST_TWICE = 20
_UNFINISHED, _ODD, _LONGEST, _TWICE, _LATE = 8, 4, 2, 2, 1  # how much a reason weighs

Status = Literal["supported", "hypothesis"]
Reason = tuple[int, str]


class Suspect(TypedDict):
    """A request to look at. *trigger* only where it is called the likely trigger: how sure."""

    index: int
    rid: str | None
    why: str
    trigger: NotRequired[Status]


def suspects(rows: Iterable[Row], kind: Kind) -> list[Suspect]:
    """The suspects among *rows* of a file of that *kind*, the most suspicious first."""
    lineup = Lineup()
    for row in rows:
        lineup.see(row)
    return lineup.named(kind)


class Lineup:
    """Sees every row once, keeps few, and names the suspects among them."""

    def __init__(self) -> None:
        self._unfinished_total = 0
        self._unfinished: list[Row] = []
        self._odd = Oddities()
        self._last: list[Row] = []
        self._rids: set[str] = set()
        self._twice: list[Row] = []

    def see(self, row: Row) -> None:
        """Take *row* into account."""
        if row["state"] == "unfinished":
            self._unfinished_total += 1
            self._unfinished.append(row)
            if len(self._unfinished) > 2 * _MOST_UNFINISHED:
                self._unfinished = _first(self._unfinished)
        self._odd.see(row)
        if row["started_at"] is not None:
            self._last.append(row)
            if len(self._last) > 200 * LAST_ARRIVALS:
                self._last = _latest(self._last)
        rid = row["rid"]
        if rid is not None:
            if rid in self._rids and len(self._twice) < _MOST_TWICE:
                self._twice.append(row)
            self._rids.add(rid)

    def named(self, kind: Kind) -> list[Suspect]:
        """The suspects of a file of that *kind*, the most suspicious first."""
        found: dict[int, tuple[Row, list[Reason]]] = {}
        for row, reason in self._reasons(kind):
            found.setdefault(row["index"], (row, []))[1].append(reason)
        ranked = sorted(found.values(), key=_rank)
        return [self._suspect(row, reasons, kind) for row, reasons in ranked]

    def _reasons(self, kind: Kind) -> Iterable[tuple[Row, Reason]]:
        died = kind == "crash dump"
        for row in _first(self._unfinished):
            yield row, (_UNFINISHED, _unfinished(row, died=died))
        for row, why in self._odd.only_ones():
            yield row, (_ODD, why)
        for row, why in self._odd.longest():
            yield row, (_LONGEST, why)
        for row in self._twice:
            yield row, (_TWICE, "its identifier is in this file twice")
        if died:
            for place, row in enumerate(_latest(self._last), start=1):
                yield row, (_LATE, _arrival(place))

    def _suspect(self, row: Row, reasons: list[Reason], kind: Kind) -> Suspect:
        why = "; ".join(text for _, text in reasons)
        trigger = self._trigger(row, reasons) if kind == "crash dump" else None
        if trigger is None:
            return {"index": row["index"], "rid": row["rid"], "why": why}
        says = f"most likely the trigger ({trigger}): {why}"
        return {"index": row["index"], "rid": row["rid"], "why": says, "trigger": trigger}

    def _trigger(self, row: Row, reasons: list[Reason]) -> Status | None:
        """How sure it is that *row* brought the server down; None where nothing says so."""
        if row["state"] != "unfinished":
            return None
        alone = self._unfinished_total == 1
        odd = any(weight == _ODD for weight, _ in reasons)
        if alone:
            return "supported" if odd else "hypothesis"
        return "hypothesis" if odd else None


def _rank(found: tuple[Row, list[Reason]]) -> tuple[float, float, int]:
    """Those with the weightiest reasons first, among equals those that had been running longest."""
    row, reasons = found
    return -sum(weight for weight, _ in reasons), -(row["elapsed_seconds"] or 0.0), row["index"]


def _first(rows: list[Row]) -> list[Row]:
    """Those that had been running longest: what hangs holds the others up behind it."""
    return nlargest(_MOST_UNFINISHED, rows, key=lambda row: row["elapsed_seconds"] or 0.0)


def _latest(rows: list[Row]) -> list[Row]:
    return nlargest(LAST_ARRIVALS, rows, key=lambda row: row["started_at"] or 0.0)


def _unfinished(row: Row, *, died: bool) -> str:
    seconds = row["elapsed_seconds"]
    when = "when the server died" if died else "in this file"
    return f"unfinished {when}" + (f", after {seconds:.1f} s" if seconds is not None else "")


def _arrival(place: int) -> str:
    return "the last arrival before the crash" if place == 1 else "among the last arrivals"
