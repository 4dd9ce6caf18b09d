"""Draws where ranks part as an icicle: the tree of calls, each as wide as the ranks in it."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from markupsafe import escape

from app.domain.counting import counted
from app.domain.stacks.icicle import Bar, icicle
from app.domain.stacks.wording import spans
from app.web.formats import cut
from app.web.parting import tree_of
from app.web.views.comparison import ComparisonKept, GroupKept
from app.web.views.found import in_order
from app.web.views.icicle import Icicle, IcicleBar
from app.web.views.ranks import USUAL, Call, Shape

ICICLE_BYTES = 24_000
WHOLE_BYTES = 1_000_000  # for the tree that it is drawn of, which is on no page
MOST_CLASSES = 26
MOST_WAYS = 4
BAR_BYTES = 330  # of the markup around one bar
LINE_PIXELS, TWO_LINES_PIXELS = 22, 36
LEAST_NAMED = 0.02  # of the width; a narrower bar has no room for a word
LONGEST_TOLD, LONGEST_RANKS = 400, 120


def icicle_of(
    comparison: ComparisonKept, groups: Sequence[GroupKept], shape: Shape = USUAL
) -> Icicle | None:
    """The icicle of the first of *groups*, outliers at the left; None where they do not part."""
    tree = tree_of(comparison, groups[:MOST_CLASSES], (), shape, room=WHOLE_BYTES, apart_first=True)
    if not tree.parts or not tree.calls:
        return None
    found = list(icicle(tree.calls))
    bars = _that_fit(found)
    drawn = sum(call.count for call in tree.calls)
    read = sum(len(group.ranks) for group in groups)
    left = read - drawn  # of classes that have no letter
    missing = sorted((one.rank for one in comparison.missing), key=in_order)
    tops = _tops(bars)
    canvas = _Canvas(read + len(missing), tops, shape)
    return Icicle(
        bars=[
            *map(canvas.call, bars),
            *canvas.beside(drawn, left, "left-out", "not drawn", counted(left, "rank")),
            *canvas.beside(read, len(missing), "void", "not read", spans(missing)),
        ],
        height=tops[-1],
        says=cut(_says(tree.calls, shape), LONGEST_TOLD),
        left_out=len(found) - len(bars) + tree.left_out,
    )


def _that_fit(found: Sequence[Bar[Call]]) -> list[Bar[Call]]:
    """As many as there is room for, whole rows from the top first."""
    room = ICICLE_BYTES
    fit: list[Bar[Call]] = []
    for bar in sorted(found, key=lambda one: one.depth):
        call = bar.call
        room -= BAR_BYTES + 2 * len(escape(call.name)) + 2 * len(escape(call.ranks))
        room -= len(escape(call.place))
        if room < 0 and fit:
            break
        fit.append(bar)
    return fit


def _tops(bars: Sequence[Bar[Call]]) -> list[int]:
    """Where each row begins, and where the last one ends: higher where ranks are told."""
    two = {bar.depth for bar in bars if bar.begins}
    rows = range(max(bar.depth for bar in bars) + 1)
    heights = (TWO_LINES_PIXELS if row in two else LINE_PIXELS for row in rows)
    return list(accumulate(heights, initial=0))


class _Canvas:
    """Turns ranks into percent of a width and rows into pixels."""

    def __init__(self, ranks: int, tops: Sequence[int], shape: Shape) -> None:
        self._ranks, self._tops, self._shape = max(ranks, 1), tops, shape

    def call(self, bar: Bar[Call]) -> IcicleBar:
        call = bar.call
        words = (f"{call.name}, {call.place}", f"{call.ranks}, {counted(call.count, 'rank')}")
        return IcicleBar(
            left=self._percent(bar.start),
            width=self._percent(bar.width),
            top=self._tops[bar.depth],
            height=self._tops[bar.depth + 1] - self._tops[bar.depth],
            style="outlier" if call.outlier else "fork" if call.fork else "",
            name=self._named(bar.width, _called(call, self._shape)),
            ranks=self._named(bar.width, call.ranks) if bar.begins else "",
            title=" · ".join((*words, "they part after it") if call.fork else words),
        )

    def beside(
        self, start: int, width: int, style: str, name: str, who: str
    ) -> Iterator[IcicleBar]:
        """Ranks without a call of their own here, over the whole height; nothing for none."""
        who = cut(who, LONGEST_RANKS)
        if width > 0:
            yield IcicleBar(
                left=self._percent(start),
                width=self._percent(width),
                top=0,
                height=self._tops[-1],
                style=style,
                name=self._named(width, name),
                ranks=self._named(width, who),
                title=f"{who} · {name}",
            )

    def _percent(self, ranks: int) -> str:
        return f"{100 * ranks / self._ranks:.4f}".rstrip("0").rstrip(".") + "%"

    def _named(self, width: int, words: str) -> str:
        return words if width / self._ranks >= LEAST_NAMED else ""


def _called(call: Call, shape: Shape) -> str:
    """A word for *call*; with the line where calls of one function are told apart by it."""
    line = call.place.rpartition(":")[2]
    name = f"{call.name}:{line}" if shape.by_line and line.isdecimal() else call.name
    return f"{len(call.folded)} calls … {name}" if call.folded else name


def _says(calls: Sequence[Call], shape: Shape) -> str:
    """Where the first fork is and who goes where, for those who cannot see the picture."""
    while len(calls) == 1 and not calls[0].fork:
        calls = calls[0].calls
    if len(calls) != 1:
        return f"The ranks share no call: {_ways(calls, shape)}."
    [fork] = calls
    ends = f"{fork.ends} no further; " if fork.ends else ""
    ways = _ways(fork.calls, shape)
    return f"{counted(fork.count, 'rank')} part after {_called(fork, shape)}: {ends}{ways}."


def _ways(calls: Sequence[Call], shape: Shape) -> str:
    told = [f"{one.ranks} in {_called(one, shape)}" for one in calls[:MOST_WAYS]]
    more = [f"and {len(calls) - MOST_WAYS} more"] if len(calls) > MOST_WAYS else []
    return "; ".join([*told, *more])
