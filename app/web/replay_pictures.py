"""Draws a trial: times side by side on logarithmic axes, and how late it was sent."""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, log10

from app.domain.counting import counted
from app.domain.replay.spread import BINS, CELLS_A_DECADE, Cell, Mark, Spread
from app.domain.replay.tally import LATENESS_BUDGET_MS
from app.web.formats import milliseconds, number
from app.web.views.replay_pictures import AxisTick, DensityCell, LateBar, LateBars, Scatter

LEFT, RIGHT, TOP, FOOT = 58.0, 592.0, 40.0, 364.0
RAIL_Y, RAIL_X = 20.0, 616.0  # of those without an answer, and without a recorded time
BARS_LEFT, BAR_STEP, BARS_TOP, BARS_FOOT = 6.0, 33.0, 18.0, 70.0
LEAST_BAR = 1.5
FEW = 40
_LEAST_SECONDS = 0.001
_HALF_DECADE = 0.47712  # log10(3)
_MOST_HALF_STEPS = 3  # decades, beyond which only powers of ten are named


def scatter(told: Spread) -> Scatter:
    """The picture of *told*; empty axes where nothing was sent."""
    canvas = _Canvas(told)
    plain = [one for one in told.marks if one.kind == "answered"]
    slower = [one for one in told.marks if one.kind == "slower"]
    failed = [one for one in told.marks if one.kind == "failed"]
    source = "A/A noise" if told.noise_measured else "noise assumed"
    return Scatter(
        says=_scatter_says(told),
        told=_told(told),
        ticks=list(canvas.ticks()),
        band=canvas.band(told.noise),
        diagonal=f"M{LEFT} {FOOT}L{RIGHT} {TOP}",
        dots="".join(f"M{x} {y}h0" for x, y in canvas.places(plain)),
        few=len(plain) <= FEW,
        slower="".join(_triangle(x, y) for x, y in canvas.places(slower)),
        failed="".join(_cross(x, y) for x, y in canvas.places(failed)),
        cells=list(canvas.density(told.cells)),
        cell_width=canvas.cell_width,
        cell_height=canvas.cell_height,
        note=f"log scale; band: {source} {_share(told.noise)}; upper rail: no answer",
        without_time=any(one.recorded is None for one in told.marks),
    )


def late_bars(told: Spread) -> LateBars:
    """How late requests went out, in bins up to the budget, and what is beyond it."""
    most = max([*told.late_bins, 1])
    step = LATENESS_BUDGET_MS / BINS
    bars = [
        _late_bar(place, count, most, step) for place, count in enumerate(told.late_bins) if count
    ]
    late = told.lateness_ms
    figures = f"p99 {milliseconds(late['p99'])}, most {milliseconds(late['max'])}"
    says = figures if sum(told.late_bins) else "nothing was sent at a time of its own"
    return LateBars(
        says=f"How late requests went out: {says}",
        bars=bars,
        budget=f"{LATENESS_BUDGET_MS:g} ms late",
        half=f"{LATENESS_BUDGET_MS / 2:g}",
    )


class _Canvas:
    """Turns seconds into places; both axes have the same scale."""

    def __init__(self, told: Spread) -> None:
        low, high = _range(told)
        self._low, self._decades = low, high - low
        self.cell_width = round((RIGHT - LEFT) / self._decades / CELLS_A_DECADE, 2)
        self.cell_height = round((FOOT - TOP) / self._decades / CELLS_A_DECADE, 2)

    def ticks(self) -> Iterator[AxisTick]:
        low, high = self._low, self._low + self._decades
        for power in range(floor(low), ceil(high) + 1):
            steps = (0.0, _HALF_DECADE) if self._decades <= _MOST_HALF_STEPS else (0.0,)
            for step in steps:
                at = power + step
                if low - 0.01 <= at <= high + 0.01:
                    yield AxisTick(self._x(at), self._y(at), _seconds(10**at))

    def band(self, noise: float) -> str:
        """What is at most so much slower, or as much faster, than recorded."""
        width = log10(1 + noise) / self._decades
        dx, dy = width * (RIGHT - LEFT), width * (FOOT - TOP)
        return (
            f"M{LEFT} {FOOT}V{FOOT - dy:.1f}L{RIGHT - dx:.1f} {TOP}H{RIGHT}V{TOP + dy:.1f}"
            f"L{LEFT + dx:.1f} {FOOT}z"
        )

    def places(self, marks: Iterable[Mark]) -> Iterator[tuple[float, float]]:
        for one in marks:
            x = RAIL_X if one.recorded is None else self._x(_log(one.recorded))
            y = RAIL_Y if one.replayed is None else self._y(_log(one.replayed))
            yield x, y

    def density(self, cells: Sequence[Cell]) -> Iterator[DensityCell]:
        most = log10(max((one.count for one in cells), default=1)) or 1.0
        for one in cells:
            level = 1 + min(3, floor(4 * log10(one.count) / most))
            top = one.replayed + 1 / CELLS_A_DECADE
            yield DensityCell(self._x(one.recorded), self._y(top), level)

    def _x(self, power: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (power - self._low) / self._decades, 1)

    def _y(self, power: float) -> float:
        return round(FOOT - (FOOT - TOP) * (power - self._low) / self._decades, 1)


def _range(told: Spread) -> tuple[float, float]:
    """From and to, in log10 seconds, at steps of half a decade."""
    values = [
        _log(value)
        for one in told.marks
        for value in (one.recorded, one.replayed)
        if value is not None
    ]
    values += [value for one in told.cells for value in (one.recorded, one.replayed)]
    if not values:
        return -1.0, 1.0
    low, high = floor(2 * min(values)) / 2, ceil(2 * max(values) + 0.1) / 2
    return (low, high) if high - low >= 1 else (low - 0.5, high + 0.5)


def _log(seconds: float) -> float:
    return log10(max(seconds, _LEAST_SECONDS))


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 0.99 else f"{value * 1000:.0f} ms"


def _share(noise: float) -> str:
    """``±18 %``; from twice as slow on as a factor."""
    return f"±{noise:.0%}".replace("%", " %") if noise < 1 else f"× {1 + noise:.1f}"


def _triangle(x: float, y: float) -> str:
    return f"M{x - 3.5:.1f} {y + 3:.1f}h7l-3.5 -6.5z"


def _cross(x: float, y: float) -> str:
    return f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"


def _told(told: Spread) -> str:
    answered = told.counts.get("answered", 0) + told.counts.get("slower", 0)
    shades = "the darker, the more · " if told.cells else ""
    unreached = told.counts.get("unreached", 0)
    left_out = f" · {number(unreached)} never reached it: not drawn" if unreached else ""
    return f"{number(answered)} answered · {shades}△ slower than noise · × failed{left_out}"


def _scatter_says(told: Spread) -> str:
    slower, failed = told.counts.get("slower", 0), told.counts.get("failed", 0)
    answered = told.counts.get("answered", 0) + slower
    return (
        f"Recorded against replayed time of {counted(answered, 'request')}: {slower:,} slower than"
        f" noise explains, {failed:,} without an answer"
    )


def _late_bar(place: int, count: int, most: int, step: float) -> LateBar:
    height = max(LEAST_BAR, round((BARS_FOOT - BARS_TOP) * count / most, 1))
    beyond = place == BINS
    span = (
        f"more than {LATENESS_BUDGET_MS:g} ms late"
        if beyond
        else f"{place * step:g} to {(place + 1) * step:g} ms late"
    )
    return LateBar(
        x=BARS_LEFT + place * BAR_STEP,
        y=round(BARS_FOOT - height, 1),
        height=height,
        beyond=beyond,
        title=f"{span}: {counted(count, 'request')}",
    )
