"""Exact quantiles of whole numbers, kept compactly: a hundred thousand take a megabyte."""

from array import array
from typing import Any

_LARGEST = (1 << 63) - 1


class Sample:
    """Numbers that were seen, and what is not known of the rest."""

    __slots__ = ("_numbers", "_sum")

    def __init__(self) -> None:
        self._numbers = array("q")
        self._sum = 0

    def add(self, number: int | None) -> None:
        """Take *number* in; an unknown one is left out."""
        if number is not None and 0 <= number <= _LARGEST:
            self._numbers.append(number)
            self._sum += number

    def figures(self) -> dict[str, Any]:
        """How many there are, nearest-rank quantiles and the largest; None of an empty sample."""
        ordered = sorted(self._numbers)
        count = len(ordered)
        if not count:
            return {"n": 0, "p50": None, "p90": None, "p99": None, "max": None, "total": None}
        return {
            "n": count,
            "p50": ordered[_rank(count, 50)],
            "p90": ordered[_rank(count, 90)],
            "p99": ordered[_rank(count, 99)],
            "max": ordered[-1],
            "total": self._sum,
        }


def _rank(count: int, percent: int) -> int:
    """Place of the smallest number that at least *percent* of the sample do not exceed."""
    return max(0, -(-count * percent // 100) - 1)
