"""Which requests are sent: ``0:3,7``, ``rid=…``, ``state=unfinished``, ``suspect``, and several.

Parts are joined by commas; a request is taken when any of them names it. A range is half open, as
in Python: ``0:3`` is 0, 1 and 2; ``5:`` is 5 and all after it.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import get_args

from app.domain.dumps.recorded import State
from app.errors import Rejected

_MOST_PARTS = 10_000
_MOST_CHARACTERS = 200_000
_NUMBER = re.compile(r"\d{1,9}")
_RANGE = re.compile(r"(\d{0,9}):(\d{0,9})")
_STATES = get_args(State)
_FIX = "Use indices and ranges (0:3,7), rid=…, state=finished|unfinished|aborted, or suspect."


@dataclass(frozen=True, slots=True)
class Selection:
    """What an expression names. *text* is the expression itself."""

    text: str
    indexes: frozenset[int] = frozenset()
    ranges: tuple[range, ...] = ()
    rids: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    suspects: bool = False

    def takes(
        self, index: int, rid: str | None, state: State | None, suspects: Container[int]
    ) -> bool:
        """Whether it names the request; *suspects* are the indexes of those to look at first."""
        return (
            index in self.indexes
            or rid in self.rids
            or state in self.states
            or (self.suspects and index in suspects)
            or any(index in one for one in self.ranges)
        )


def read_selection(text: str) -> Selection:
    """The selection that *text* says. Raises Rejected, with the part that makes no sense."""
    if len(text) > _MOST_CHARACTERS:
        raise Rejected(f"The selection has more than {_MOST_CHARACTERS} characters.")
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > _MOST_PARTS:
        raise Rejected(f"The selection has more than {_MOST_PARTS} parts.")
    named = _Named()
    for number, part in enumerate(parts, start=1):
        if not named.take(part):
            raise _nonsense(part, number)
    return Selection(
        text=text,
        indexes=frozenset(named.indexes),
        ranges=tuple(named.ranges),
        rids=frozenset(named.rids),
        states=frozenset(named.states),
        suspects="suspect" in parts,
    )


class _Named:
    """What the parts of an expression name so far."""

    def __init__(self) -> None:
        self.indexes, self.rids, self.states = set[int](), set[str](), set[str]()
        self.ranges: list[range] = []

    def take(self, part: str) -> bool:
        """Take *part* in; whether it makes sense. Raises Rejected where one can say what not."""
        kind, equals, value = part.partition("=")
        if _NUMBER.fullmatch(part):
            self.indexes.add(int(part))
        elif found := _RANGE.fullmatch(part):
            self.ranges.append(_range(part, found[1], found[2]))
        elif kind == "rid" and value:
            self.rids.add(value)
        elif kind == "state" and equals:
            self.states.add(_state(value))
        else:
            return part == "suspect"
        return True


def _range(part: str, start: str, end: str) -> range:
    made = range(int(start or 0), int(end) if end else 10**9)
    if not made:
        raise Rejected(f"The range {part} is empty: its end is not in it.", fix=_FIX)
    return made


def _state(told: str) -> str:
    if told not in _STATES:
        raise Rejected(f"There is no state {told[:40]!r}.", fix=_FIX)
    return told


def _nonsense(part: str, number: int) -> Rejected:
    said = repr(part[:40]) if part else "empty"
    return Rejected(f"Part {number} of the selection makes no sense: {said}.", fix=_FIX)
