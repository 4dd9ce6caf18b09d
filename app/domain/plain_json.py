"""JSON from outside, read under limits: whatever comes back can be written as JSON again."""

from typing import Any

import orjson

from app.errors import Malformed

MAX_DEPTH = 64

Json = Any  # what JSON can say; callers look before they use


def read_json(body: bytes, *, max_depth: int = MAX_DEPTH) -> Json:
    """The value in *body*; raises Malformed, saying where it stops making sense.

    NaN, Infinity, numbers too large for a double, lone surrogates and bytes that are not
    UTF-8 are refused rather than bent into something else. Integers beyond 64 bits lose
    their last digits.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"Not JSON: {error.msg} at byte {error.pos}.") from error
    if _deeper_than(value, max_depth):
        raise Malformed(f"JSON nested deeper than {max_depth} levels.")
    return value


def _deeper_than(value: Json, depth: int) -> bool:
    """Whether containers nest deeper than *depth*; level by level, never by recursion."""
    level = [value]
    for _ in range(depth + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Json) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
