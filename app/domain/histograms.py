"""What a histogram says between two scrapes: how many, their mean, their quantiles.

A scrape tells cumulative counts since the process started; only the difference of two speaks
of the time in between. No figure is invented beyond the largest finite bucket.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from app.domain.exposition import Exposition, figures
from app.domain.metric_line import number
from app.domain.series import Key, fell

_FEWEST_FOR_A_QUANTILE = 20


@dataclass(frozen=True, slots=True)
class Window:
    """The observations of one histogram between two scrapes, or since the process started."""

    n: int
    mean: float | None  # in the family's unit; None without observations or without a sum
    buckets: tuple[tuple[float, float], ...]  # (upper bound, count up to it), ascending
    problems: tuple[str, ...]  # why the figures contradict each other


@dataclass(frozen=True, slots=True)
class _Histogram:
    """The series of one family that count, at one scrape."""

    counts: Mapping[Key, float]
    sums: Mapping[Key, float]
    buckets: Mapping[Key, float]  # their keys hold ``le``

    def fell_since(self, earlier: "_Histogram") -> bool:
        return (
            fell(earlier.counts, self.counts)
            or fell(earlier.sums, self.sums)
            or fell(earlier.buckets, self.buckets)
        )


_NOTHING = _Histogram({}, {}, {})


def window(
    first: Exposition | None,
    second: Exposition,
    family: str,
    *,
    where: Mapping[str, str] | None = None,
) -> Window | None:
    """What *family* observed from the first scrape to the second, over all series that count.

    first None: since the process started. where: only series with these labels. None when either
    scrape does not tell the family or was cut short, or when a counter fell: a restart lies in
    between.
    """
    earlier = _NOTHING if first is None else _histogram(first, family, where)
    later = _histogram(second, family, where)
    if earlier is None or later is None or later.fell_since(earlier):
        return None
    count = _difference(earlier.counts, later.counts)
    if not math.isfinite(count) or count < 0:
        return None
    n = round(count)
    buckets, unread = _buckets(earlier.buckets, later.buckets)
    problems = (*unread, *_contradictions(n, buckets))
    return Window(
        n=n,
        mean=_mean(n, _difference(earlier.sums, later.sums) if later.sums else math.nan),
        buckets=buckets,
        problems=tuple(f"{family}: {problem}" for problem in problems),
    )


def quantile(window: Window, q: float) -> float | dict[str, float] | None:
    """The value that a share *q* (0 to 1) of the observations does not exceed.

    Linear inside its bucket, the first of which begins at 0. ``{"over": bound}`` when it lies
    above the largest finite bound. None under 20 observations and where the figures contradict
    each other.
    """
    if not 0 <= q <= 1:
        raise ValueError("A quantile is asked for as a share from 0 to 1.")
    finite = [bucket for bucket in window.buckets if math.isfinite(bucket[0])]
    if window.n < _FEWEST_FOR_A_QUANTILE or window.problems or not finite:
        return None
    rank = q * window.n
    lower, below = min(0.0, finite[0][0]), 0.0
    for bound, up_to in finite:
        if up_to >= rank and up_to > below:
            return lower + (bound - lower) * (rank - below) / (up_to - below)
        lower, below = bound, up_to
    return {"over": lower}


def _histogram(
    exposition: Exposition, family: str, where: Mapping[str, str] | None
) -> _Histogram | None:
    """The series of *family*; None when they are not there, or perhaps not all there."""
    counts, sums, buckets = (
        figures(exposition, family + suffix, where=where)
        for suffix in ("_count", "_sum", "_bucket")
    )
    return _Histogram(counts, sums, buckets) if counts and not exposition.truncated else None


def _difference(before: Mapping[Key, float], after: Mapping[Key, float]) -> float:
    return sum(after.values()) - sum(before.values())


def _mean(n: int, total: float) -> float | None:
    return total / n if n and math.isfinite(total) else None


def _buckets(
    before: Mapping[Key, float], after: Mapping[Key, float]
) -> tuple[tuple[tuple[float, float], ...], list[str]]:
    """Bound and count of each bucket, ascending, and the bounds that are no numbers."""
    counts: defaultdict[float, float] = defaultdict(float)
    problems: list[str] = []
    for key, value in after.items():
        told = dict(key).get("le", "")
        try:
            bound = number(told)
        except ValueError as error:
            problems.append(f"a bucket's bound is {error}")
            continue
        counts[bound] += value - before.get(key, 0.0)
    return tuple(sorted(counts.items())), problems


def _contradictions(n: int, buckets: tuple[tuple[float, float], ...]) -> Iterator[str]:
    """Sentences on counts that cannot all be true."""
    held = next(((bound, count) for bound, count in buckets if count), None)
    if not n and held:
        yield f"the count is 0, but the bucket up to {held[0]:g} holds {held[1]:g}"
    elif buckets and math.isinf(buckets[-1][0]) and round(buckets[-1][1]) != n:
        yield f"the count is {n}, but the buckets hold {buckets[-1][1]:g}"
    if any(not lower <= upper for (_, lower), (_, upper) in pairwise(buckets)):
        yield "a bucket holds fewer than one below it"
