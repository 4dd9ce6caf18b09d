"""What a trial's outcomes look like together: times side by side, lateness, how full it was.

One pass over the rows of a trial, however many; what is drawn of them stays small.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from typing import Literal, NamedTuple

from app.domain.replay.latency import ASSUMED_NOISE, quantiles
from app.domain.replay.schedule import most_in_flight
from app.domain.replay.tally import LATENESS_BUDGET_MS

MOST_MARKS = 2000
MOST_OUTLIERS = 300  # of each kind drawn one by one where the rest is a density
BINS = 10  # of lateness, up to the budget; one more for what is beyond it
CELLS_A_DECADE = 16
_LEAST_SECONDS = 0.001

Kind = Literal["answered", "slower", "failed", "unreached"]

_UNREACHED = frozenset(("connection-refused", "unreachable", "tls-failed"))


class Row(NamedTuple):
    """The columns of an outcome that are looked at here; None is not known."""

    position: int  # index of the request
    state: str
    error: str | None
    sent_at: float | None
    lateness_ms: float | None
    e2e_seconds: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    recorded_state: str | None
    recorded_e2e_seconds: float | None
    recorded_prompt_tokens: int | None
    recorded_completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """One request that reached the target. *recorded* None: not known; *replayed*: no answer."""

    index: int
    kind: Kind
    recorded: float | None
    replayed: float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """Requests that took about as long in both; each value is the lower corner in log10 seconds."""

    recorded: float
    replayed: float
    count: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of how many requests that tell both, the length was the recorded one."""

    equal: int
    of: int


@dataclass(frozen=True, slots=True)
class Spread:
    """*marks* is everything when *cells* is empty, else the outliers; counts are of everything."""

    counts: Mapping[Kind, int]
    marks: Sequence[Mark]
    cells: Sequence[Cell]
    noise: float
    noise_measured: bool
    late_bins: Sequence[int]  # the last one is beyond the budget
    lateness_ms: Mapping[str, float | None]
    in_flight: int | None  # at most at once
    prompts: Lengths
    answers: Lengths

    @property
    def beyond(self) -> int:
        """How many were later than the budget."""
        return self.late_bins[-1]


def spread(rows: Iterable[Row], noise: float | None = None) -> Spread:
    """All of a trial; *noise* is what an A/A run measured of single requests, None: assumed."""
    seen = _Seen(ASSUMED_NOISE if noise is None else noise)
    for row in rows:
        seen.take(row)
    return seen.spread(measured=noise is not None)


@dataclass(slots=True)
class _Seen:
    noise: float
    counts: Counter[Kind] = field(default_factory=Counter)
    plain: list[Mark] = field(default_factory=list)
    outliers: dict[Kind, list[Mark]] = field(default_factory=lambda: {"slower": [], "failed": []})
    cells: Counter[tuple[int, int]] = field(default_factory=Counter)
    lateness: list[float] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)
    prompts: Counter[bool] = field(default_factory=Counter)
    answers: Counter[bool] = field(default_factory=Counter)

    def take(self, row: Row) -> None:
        if row.sent_at is None:
            return
        if row.lateness_ms is not None:
            self.lateness.append(row.lateness_ms)
        if row.e2e_seconds is not None:
            self.spans.append((row.sent_at, row.sent_at + row.e2e_seconds))
        kind = _kind(row, self.noise)
        self.counts[kind] += 1
        if kind == "unreached":
            return
        if kind != "failed":
            _compare(self.prompts, row.prompt_tokens, row.recorded_prompt_tokens)
            _compare(self.answers, row.completion_tokens, row.recorded_completion_tokens)
        replayed = None if kind == "failed" else row.e2e_seconds
        self._draw(Mark(row.position, kind, row.recorded_e2e_seconds, replayed))

    def _draw(self, mark: Mark) -> None:
        if mark.kind != "answered":
            if len(self.outliers[mark.kind]) < MOST_OUTLIERS:
                self.outliers[mark.kind].append(mark)
            return
        if len(self.plain) <= MOST_MARKS:
            self.plain.append(mark)
        if mark.recorded is not None and mark.replayed is not None:
            self.cells[_cell(mark.recorded), _cell(mark.replayed)] += 1

    def spread(self, *, measured: bool) -> Spread:
        outliers = [*self.outliers["slower"], *self.outliers["failed"]]
        dense = len(self.plain) + len(outliers) > MOST_MARKS
        cells = [
            Cell(was / CELLS_A_DECADE, now / CELLS_A_DECADE, count)
            for (was, now), count in self.cells.items()
        ]
        return Spread(
            counts=dict(self.counts),
            marks=outliers if dense else [*self.plain, *outliers],
            cells=cells if dense else [],
            noise=self.noise,
            noise_measured=measured,
            late_bins=_bins(self.lateness),
            lateness_ms=quantiles(self.lateness),
            in_flight=most_in_flight(self.spans) if self.spans else None,
            prompts=Lengths(self.prompts[True], self.prompts.total()),
            answers=Lengths(self.answers[True], self.answers.total()),
        )


def _kind(row: Row, noise: float) -> Kind:
    """Slower only where the answer is as long as the recorded one: more words take longer."""
    if row.state != "completed":
        return "unreached" if row.error in _UNREACHED else "failed"
    was, now = row.recorded_e2e_seconds, row.e2e_seconds
    as_long = row.completion_tokens == row.recorded_completion_tokens is not None
    if row.recorded_state == "finished" and as_long and was and now and now > was * (1 + noise):
        return "slower"
    return "answered"


def _compare(counts: Counter[bool], now: int | None, was: int | None) -> None:
    if now is not None and was is not None:
        counts[now == was] += 1


def _cell(seconds: float) -> int:
    return floor(log10(max(seconds, _LEAST_SECONDS)) * CELLS_A_DECADE)


def _bins(lateness: Iterable[float]) -> list[int]:
    bins = [0] * (BINS + 1)
    for late in lateness:
        bins[min(BINS, max(0, int(late * BINS / LATENESS_BUDGET_MS)))] += 1
    return bins
