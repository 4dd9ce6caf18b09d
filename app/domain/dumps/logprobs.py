"""How likely each token of a recorded answer was, where its request asked for that."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from app.domain.figures import table
from app.domain.pickled.values import ints_of, items_of

_DECIMALS = 6
_OF_ROUNDING = 1e-3  # by which a log probability may be above 0


def logprobs_of(output: Mapping[str, Any]) -> list[float] | None:
    """The log probability of each of ``output_ids``; None unless each is told, and is one.

    From our own export, or from the rows of SGLang: log probability, token id, text or None.
    """
    told = output.get("output_logprobs")
    rows = table(output.get("meta_info")).get("output_token_logprobs") if told is None else None
    if told is None and rows is None:
        return None
    ids = ints_of(output.get("output_ids"))
    found = _own(told) if rows is None else _of_rows(rows, ids or ())
    if not ids or len(found) != len(ids):
        return None
    return [round(one, _DECIMALS) for one in found]


def logprob(value: object) -> float | None:
    """*value* where it is a log probability."""
    if type(value) is float and value <= _OF_ROUNDING and isfinite(value):
        return min(value, 0.0)
    return 0.0 if type(value) is int and value == 0 else None


def token_and_logprob(row: object) -> tuple[int, float] | None:
    """What one of SGLang's rows says; None for anything else."""
    parts = items_of(row)
    if parts is None or len(parts) < 2:
        return None
    number, token = logprob(parts[0]), parts[1]
    return None if number is None or type(token) is not int else (token, number)


def _own(told: object) -> list[float]:
    items = items_of(told) or ()
    return [number for one in items if (number := logprob(one)) is not None]


def _of_rows(rows: object, ids: Sequence[int]) -> list[float]:
    """Of the rows that are of the token at their place."""
    items = items_of(rows) or ()
    if len(items) != len(ids):
        return []
    pairs = zip(map(token_and_logprob, items), ids, strict=True)
    return [told[1] for told, token in pairs if told is not None and told[0] == token]
