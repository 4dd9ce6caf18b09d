"""Values out of a target's JSON, safe to calculate with. What is not usable is None, never 0."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

_LARGEST = 1e18  # beyond this a figure of a server is nonsense, and may not even fit a float
_LONGEST_NUMBER = 40  # characters; the Rust frontend writes some numbers as strings


def figure(value: object) -> float | None:
    """*value* as a finite number; numbers written as strings count, booleans do not."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
        return None
    if isinstance(value, str) and len(value) > _LONGEST_NUMBER:
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) and abs(number) < _LARGEST else None


def whole(value: object) -> int | None:
    """*value* as an integer; None when it has a fraction."""
    number = figure(value)
    return int(number) if number is not None and number.is_integer() else None


def text(value: object, *, limit: int = 300) -> str | None:
    """*value* if it is a non-empty string, cut to *limit* characters."""
    if not isinstance(value, str) or not value:
        return None
    return value if len(value) <= limit else value[: limit - 1] + "…"


def table(value: object) -> Mapping[str, Any]:
    """*value* if it is a JSON object, otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def epoch_seconds(value: object) -> float | None:
    """Seconds since 1970 of an epoch number or of an ISO 8601 text; a text without zone is UTC."""
    number = figure(value)
    if number is not None:
        return number
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def rounded(value: float | None, digits: int = 4) -> float | None:
    """*value* rounded for reading; None stays None."""
    return None if value is None else round(value, digits)


def complete_total(values: list[int | None], expected: int | None) -> int | None:
    """The sum of *values*; None when one is unknown or fewer than *expected* are there.

    Nonsense that adds up beyond what a figure may be is unknown as well.
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values) or (expected is not None and len(known) != expected):
        return None
    return whole(sum(known))
