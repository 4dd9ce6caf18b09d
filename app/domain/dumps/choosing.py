"""Which requests of a file are meant: ``0:3,7``, ``rid=…``, ``state=unfinished``, ``suspect``.

Terms between commas; a request is meant when one of them names it. Ranges are half-open, from 0.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from app.domain.dumps.recorded import State
from app.errors import Malformed

LONGEST = 4000  # characters of an expression that a database is asked with
SUSPECT = "suspect"
EXAMPLE = "0:3,7,state=unfinished"
END = 2**63 - 1  # of a range without one
_STATES: tuple[str, ...] = get_args(State)
_INDEX = re.compile(r"(\d{1,18})")
_RANGE = re.compile(r"(\d{0,18}):(\d{0,18})")


@dataclass(frozen=True, slots=True)
class Choice:
    """Requests that are meant, by where they stand and by what they are."""

    spans: tuple[tuple[int, int], ...] = ()  # half-open, in order, none touches another
    rids: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    suspects: bool = False

    def __bool__(self) -> bool:
        return bool(self.spans or self.rids or self.states or self.suspects)

    def __str__(self) -> str:
        """The shortest expression that means the same."""
        terms = [
            *map(_span_told, self.spans),
            *(f"rid={rid}" for rid in self.rids),
            *(f"state={state}" for state in self.states),
            *([SUSPECT] if self.suspects else ()),
        ]
        return ",".join(terms)


def read_choice(text: str, *, longest: int = LONGEST) -> Choice:
    """The choice that *text* asks for, none for an empty one; raises Malformed for what is none."""
    if len(text) > longest:
        raise Malformed(
            f"The choice is longer than {longest} characters.", fix="Use ranges, such as 0:500."
        )
    spans: list[tuple[int, int]] = []
    rids, states = dict[str, None](), dict[str, None]()
    terms = [term for part in text.split(",") if (term := part.strip())]
    for term in terms:
        if span := _span(term):
            spans.append(span)
        elif term.startswith("rid=") and term != "rid=":
            rids[term.removeprefix("rid=")] = None
        elif term.removeprefix("state=") in _STATES and term.startswith("state="):
            states[term.removeprefix("state=")] = None
        elif term != SUSPECT:
            raise _no_term(term)
    return Choice(tuple(_joined(spans)), tuple(rids), tuple(states), SUSPECT in terms)


def _span(term: str) -> tuple[int, int] | None:
    """The range that *term* is, None for another kind of term; raises Malformed for no index."""
    if index := _INDEX.fullmatch(term):
        return int(index[1]), int(index[1]) + 1
    found = _RANGE.fullmatch(term)
    if found is None or term == ":":
        return None
    start, end = int(found[1] or 0), int(found[2] or END)
    if start >= end:
        raise Malformed(
            f"The range {term} is empty.", fix="Its end is not part of it: 0:3 is 0, 1 and 2."
        )
    return start, end


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """*spans* in order, those that touch made one."""
    current: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if current is None:
            current = start, end
        elif start <= current[1]:
            current = current[0], max(current[1], end)
        else:
            yield current
            current = start, end
    if current is not None:
        yield current


def _span_told(span: tuple[int, int]) -> str:
    start, end = span
    if end == start + 1:
        return str(start)
    return f"{start}:" if end == END else f"{start}:{end}"


def _no_term(term: str) -> Malformed:
    states = ", ".join(f"state={state}" for state in _STATES)
    return Malformed(
        f"“{term[:60]}” names no request.",
        why=f"Terms are an index, a range such as 0:3, rid=…, {states} and {SUSPECT}.",
        fix=f"Put commas between them, as in {EXAMPLE}.",
    )
