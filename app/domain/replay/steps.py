"""What a reduction writes down of each step, one line of JSON each, and how it goes on from that.

A line is written once its step is over. A reduction that was killed is begun again with the same
arguments: the verdicts that are there are not asked for again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson

from app.domain.replay.judging import Says
from app.domain.replay.reducing import Probe
from app.errors import Conflict

Line = Mapping[str, Any]
_SAYS: Mapping[object, Says] = {"fails": "fails", "passes": "passes"}  # others are tried again


def told(probe: Probe) -> dict[str, Any]:
    """*probe* as lines have it; ``requests`` is an expression that ``--select`` takes."""
    return {
        "requests": ranges(probe.indexes),
        "prompts": {str(index): length for index, length in sorted(probe.lengths.items())},
        "answers": {str(index): most for index, most in sorted(probe.new_tokens.items())},
    }


def key(probe_told: Line) -> str:
    """What two lines about the same probe have in common."""
    return orjson.dumps([probe_told[name] for name in ("requests", "prompts", "answers")]).decode()


def ranges(indexes: Sequence[int]) -> str:
    """*indexes*, in the order they are sent, as indices and half-open ranges: ``0:3,7``."""
    starts = [0, *(n + 1 for n, (one, two) in enumerate(pairwise(indexes)) if two != one + 1)]
    ends = [*starts[1:], len(indexes)]
    parts = (indexes[start:end] for start, end in zip(starts, ends, strict=True))
    return ",".join(
        str(part[0]) if len(part) == 1 else f"{part[0]}:{part[-1] + 1}" for part in parts if part
    )


def known(lines: Iterable[Line], start: Line) -> dict[str, Says]:
    """The verdicts in *lines*, by key. Raises Conflict for those of another reduction.

    *start* is what makes a reduction this one: the requests, how they are sent, and the check.
    """
    found: dict[str, Says] = {}
    for number, line in enumerate(lines):
        if number == 0 and line.get("of") != start:
            raise Conflict(
                "The steps that are there are of another reduction.",
                why="The file, the selection, the check or the way of sending differs.",
                fix="Name another file with --out, or remove them.",
            )
        if line.get("step") == "verdict" and line.get("says") in _SAYS:
            found[key(line)] = _SAYS[line["says"]]
    return found


def read(text: bytes) -> Iterator[Line]:
    """The lines of *text*; the last may be torn, and is then left."""
    for line in text.split(b"\n"):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value
