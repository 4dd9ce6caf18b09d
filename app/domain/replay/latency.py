"""Recorded and replayed times side by side, request by request, and how much of it is noise.

Only requests that are recorded as finished and were answered are pairs, and only pairs with as
many tokens out as before say something of the whole time: twice the answer takes twice as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

LEAST_PAIRS = 20  # fewer make no quantile worth comparing
ASSUMED_NOISE = 0.25  # of the median, where no A/A run has measured it
COLD_CACHE_SHARE = (
    0.10  # of the prompt tokens; more found in the recorded cache alone explains slow
)
_DIGITS = 6

Measure = Literal["ttft", "e2e"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One request's time, recorded and replayed, in seconds."""

    index: int
    recorded_seconds: float
    replayed_seconds: float


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest of *ordered* that at least *share* of them do not exceed; None of none."""
    if not ordered:
        return None
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def quantiles(numbers: Iterable[float]) -> dict[str, Any]:
    """How many there are, p50, p90, p99 and the largest; None of an empty sample."""
    ordered = sorted(numbers)
    told = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {
        "n": len(ordered),
        **{name: _rounded(quantile(ordered, share)) for name, share in told.items()},
    }


def paired(pairs: Iterable[Pair]) -> dict[str, Any]:
    """Quantiles of replayed divided by recorded; pairs recorded as taking no time are left out."""
    return quantiles(
        one.replayed_seconds / one.recorded_seconds for one in pairs if one.recorded_seconds > 0
    )


def noise_floor(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """How far two runs of the same requests on one target are apart: A/A, as a share.

    Of the times by request, the 90th percentile of how much the slower exceeds the faster. None
    where fewer than 20 requests were answered in both.
    """
    both = [(first[index], second[index]) for index in first.keys() & second.keys()]
    apart = sorted(max(pair) / min(pair) - 1.0 for pair in both if min(pair) > 0)
    return _rounded(quantile(apart, 0.9)) if len(apart) >= LEAST_PAIRS else None


def median_noise(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """How far the medians of two runs of the same requests are apart, as a share.

    This is what a median is judged by; a single request swings more, see ``noise_floor``.
    """
    both = sorted(first.keys() & second.keys())
    if len(both) < LEAST_PAIRS:
        return None
    ratios = sorted(second[index] / first[index] for index in both if first[index] > 0)
    middle = quantile(ratios, 0.5)
    return None if middle is None else _rounded(abs(middle - 1.0))


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)
