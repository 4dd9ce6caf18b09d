"""Draws how lengths and arrivals of a dump's requests are spread, from figures kept with it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.counting import counted
from app.domain.dumps.spread import Arrivals, Bar, Lengths, Spread
from app.web.formats import number, span
from app.web.views.dump_pictures import Picture, PictureBar, Tick
from app.web.views.dump_requests import exactly, moment_of

TOP, LENGTHS_FOOT, ARRIVALS_FOOT, BELOW = 18, 112, 88, 20  # pixels
LEAST_HEIGHT = 2.0  # of a bar that counts anything
FEWEST_COLUMNS = 12
BAR_SHARE = 0.86  # of its column; the rest is the gap
FEWEST_FOR_P99 = 20  # below it that is nothing but the largest
ROOM_BESIDE = 65  # percent of the width that "not known" leaves on a phone
_TICK_DIGITS = 3  # a word below every third bar: 8 times as much

Figures = Mapping[str, Any]


def length_picture(title: str, lengths: Lengths, figures: Figures | None) -> Picture:
    """Lengths on a logarithmic axis; those that the file does not tell hatched at the right."""
    bars, unknown = lengths["bars"], lengths["unknown"]
    columns = max(len(bars), FEWEST_COLUMNS) + (2 if unknown[0] else 0)
    most = max([count for count, _ in bars] + [unknown[0], 1])
    canvas = _Canvas(columns, most, LENGTHS_FOOT)
    drawn = [
        one
        for digits, bar in enumerate(bars)
        for one in canvas.stack(digits, bar, f"{_range(digits)} tokens")
    ]
    room = ROOM_BESIDE if unknown[0] else 100
    ticks = list(_length_ticks(canvas, len(bars), room))
    if unknown[0]:
        drawn += canvas.hatched(columns - 1, unknown[0], "length not known")
        ticks.append(Tick("100%", "end", "not known"))
    return Picture(
        title=title,
        figures=_figures(figures or {}),
        says=_lengths_say(lengths, figures or {}),
        bars=drawn,
        ticks=ticks,
        most=number(most),
        written=None,
        foot=LENGTHS_FOOT,
        height=LENGTHS_FOOT + BELOW,
    )


def arrival_picture(arrivals: Arrivals) -> Picture | None:
    """Requests by the time they came; None where the file tells no time."""
    since, until = moment_of(arrivals["since"]), moment_of(arrivals["until"])
    bars = arrivals["bars"]
    if since is None or until is None or not bars:
        return None
    most = max(count for count, _ in bars)
    canvas = _Canvas(len(bars), most, ARRIVALS_FOOT)
    each = (until - since) / len(bars)
    drawn = [
        one
        for place, bar in enumerate(bars)
        for one in canvas.stack(place, bar, f"from {exactly(since + place * each)}")
    ]
    return Picture(
        title="Arrivals",
        figures=f"{since:%-d %b} {exactly(since)} to {exactly(until)} UTC",
        says=_arrivals_say(arrivals, most, each.total_seconds()),
        bars=drawn,
        ticks=[Tick("0%", "start", exactly(since)), Tick("100%", "end", _end(arrivals))],
        most=number(most),
        written=_percent(_place_of(arrivals)),
        foot=ARRIVALS_FOOT,
        height=ARRIVALS_FOOT + BELOW,
    )


def pictures(spread: Spread | None, document: Mapping[str, Any]) -> Sequence[Picture]:
    """All pictures of a dump: prompts, answers, arrivals; none where nothing is known of them."""
    if spread is None:
        return []
    lengths = [
        length_picture(title, kept, document.get(name))
        for title, name, kept in (
            ("Prompt tokens", "prompt_tokens", spread["prompt_tokens"]),
            ("Answer tokens", "completion_tokens", spread["completion_tokens"]),
        )
        if kept["bars"]
    ]
    arrivals = arrival_picture(spread["arrivals"])
    return [*([arrivals] if arrivals else ()), *lengths]


class _Canvas:
    """Turns columns into percent of a width and counts into pixels above the axis."""

    def __init__(self, columns: int, most: int, foot: int) -> None:
        self._columns, self._most, self._foot = columns, most, foot

    def stack(self, column: int, bar: Bar, where: str) -> Iterator[PictureBar]:
        """What ended below, what did not above it; nothing for none."""
        count, unfinished = bar
        ended = count - unfinished
        top = float(self._foot)
        for part, style, says in ((ended, "", ""), (unfinished, "warn", " unfinished")):
            if part:
                height = self._height(part)
                top -= height
                title = f"{where}: {counted(part, 'request')}{says}"
                yield self._bar(column, top, height, style, title)

    def hatched(self, column: int, count: int, where: str) -> Iterator[PictureBar]:
        height = self._height(count)
        title = f"{where}: {counted(count, 'request')}"
        yield self._bar(column, self._foot - height, height, "void", title)

    def left(self, column: float) -> float:
        """Where a column begins, in percent."""
        return 100 * column / self._columns

    def _bar(self, column: int, top: float, height: float, style: str, title: str) -> PictureBar:
        x, width = self.left(column), 100 * BAR_SHARE / self._columns
        return PictureBar(_percent(x), _percent(width), round(top, 1), height, style, title)

    def _height(self, count: int) -> float:
        full = self._foot - TOP
        return max(LEAST_HEIGHT, round(full * count / self._most, 1))


def _length_ticks(canvas: _Canvas, bars: int, room: float) -> Iterator[Tick]:
    for digits in range(1, bars, _TICK_DIGITS):
        if canvas.left(digits) < room:
            yield Tick(_percent(canvas.left(digits)), "start", number(1 << digits - 1))


def _range(digits: int) -> str:
    """The lengths of so many binary digits."""
    if digits < 2:
        return str(digits)
    return f"{number(1 << digits - 1)} to {number((1 << digits) - 1)}"


def _figures(figures: Figures) -> str:
    if figures.get("max") is None:
        return "not known"
    count = figures.get("n") or 0
    names = ("p50", "p99", "max") if count >= FEWEST_FOR_P99 else ("p50", "max")
    told = " · ".join(f"{name} {number(figures.get(name))}" for name in names)
    return f"{told}, of {number(count)}"


def _lengths_say(lengths: Lengths, figures: Figures) -> str:
    unknown, unfinished = lengths["unknown"]
    told = f"{_figures(figures)} requests."
    if not unknown:
        return told
    left = f", {unfinished:,} of them unfinished" if unfinished else ""
    return f"{told} Of {unknown:,} the file does not tell{left}."


def _arrivals_say(arrivals: Arrivals, most: int, bar_seconds: float) -> str:
    total = sum(count for count, _ in arrivals["bars"])
    unfinished = sum(count for _, count in arrivals["bars"])
    rate = f"at most {counted(most, 'request')} in {span(bar_seconds)}"
    were = "was" if unfinished == 1 else "were"
    left = f"; {unfinished:,} {were} unfinished when it was written" if unfinished else ""
    return f"{counted(total, 'request')} came, {rate}{left}."


def _place_of(arrivals: Arrivals) -> float | None:
    """Where the dump was written, in percent of the width."""
    written, since, until = arrivals["written_at"], arrivals["since"], arrivals["until"]
    if written is None or since is None or until is None or until <= since:
        return None
    return 100 * (written - since) / (until - since)


def _end(arrivals: Arrivals) -> str:
    moment = exactly(moment_of(arrivals["until"]))
    return f"dump written {moment}" if arrivals["written_at"] == arrivals["until"] else moment


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}".rstrip("0").rstrip(".") + "%"
