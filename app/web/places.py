"""Showing a captured body as numbered lines, with the place that a claim rests on marked.

JSON is laid out anew so that a pointer is a run of lines; everything else is shown as it came.
Only the part around the place is shown: the whole body is a download.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.domain.plain_json import read_json
from app.errors import Malformed
from app.web.formats import visible

BEFORE_LINES, AFTER_LINES = 60, 440
LONGEST_LINE = 1000  # characters; what is longer is cut and said to be
OF_THE_ANSWER = ("status", "outcome")  # places in how asking went, not in the body
_LABEL = re.compile(r'[a-zA-Z_]\w*="[^"\n]*"')
_LINE = re.compile(r"line (\d{1,9})")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a body; *marked* lines are the place that was asked for."""

    number: int
    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of a body around a place. ``found`` is None when no place was asked for."""

    lines: tuple[Line, ...]
    total_lines: int
    laid_out: bool  # JSON, written anew with one value a line
    found: bool | None

    @property
    def whole(self) -> bool:
        return len(self.lines) == self.total_lines

    @property
    def first_marked(self) -> int | None:
        """Number of the first line of the place; None when there is none."""
        return next((line.number for line in self.lines if line.marked), None)


def shown(body: bytes, at: str) -> Shown:
    """The lines of *body* around the place *at*: a JSON pointer, a series, or ``line 12``."""
    at = "" if at in OF_THE_ANSWER else at
    value = _as_json(body)
    if value is None:
        texts = body.decode(errors="replace").splitlines()
        places = [index for index, text in enumerate(texts) if at and _is_at(index, text, at)]
    else:
        laid_out = list(_lines("", value[0], 0))
        texts = [text for _, text in laid_out]
        places = [index for index, (pointer, _) in enumerate(laid_out) if _within(pointer, at)]
    return _part(texts, places, laid_out=value is not None, asked=bool(at))


def _part(texts: Sequence[str], places: Sequence[int], *, laid_out: bool, asked: bool) -> Shown:
    start = max(0, places[0] - BEFORE_LINES) if places else 0
    end = min(len(texts), start + BEFORE_LINES + AFTER_LINES)
    marked = frozenset(places)
    lines = tuple(
        Line(index + 1, visible(cut(texts[index])), index in marked) for index in range(start, end)
    )
    return Shown(lines, len(texts), laid_out, bool(places) if asked else None)


def cut(text: str) -> str:
    """*text*, or its beginning with a note of how much is left out."""
    left = len(text) - LONGEST_LINE
    return text if left <= 0 else f"{text[:LONGEST_LINE]}… ({left} more characters)"


def _as_json(body: bytes) -> tuple[Any] | None:
    """The value in a tuple, so that JSON's null is not "no JSON"."""
    if body[:1] not in (b"{", b"["):
        return None
    try:
        return (read_json(body),)
    except Malformed:
        return None


def _within(pointer: str, at: str) -> bool:
    """Whether *pointer* is the place *at* or inside it; ``*`` stands for any one step."""
    steps, wanted = pointer.split("/"), at.split("/")
    pairs = zip(steps, wanted, strict=False)
    return bool(at) and len(steps) >= len(wanted) and all(b in ("*", a) for a, b in pairs)


def _is_at(index: int, text: str, at: str) -> bool:
    if numbered := _LINE.fullmatch(at):
        return index + 1 == int(numbered[1])
    name, _, labels = at.partition("{")
    follows = text[len(name) : len(name) + 1]
    return (
        text.startswith(name)
        and follows in ("{", " ", "_")
        and all(label in text for label in _LABEL.findall(labels))
    )


def _lines(
    pointer: str,
    value: Any,  # noqa: ANN401  (any JSON)
    depth: int,
    key: str = "",
    tail: str = "",
) -> Iterator[tuple[str, str]]:
    """*value* laid out as (JSON pointer, line); the closing line belongs to its opening one."""
    indent = "  " * depth
    if not isinstance(value, dict | list) or not value:
        yield pointer, f"{indent}{key}{_scalar(value)}{tail}"
        return
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    yield pointer, f"{indent}{key}{opening}"
    inner = list(value.items() if isinstance(value, dict) else enumerate(value))
    for place, (name, one) in enumerate(inner, start=1):
        step = str(name).replace("~", "~0").replace("/", "~1")
        label = f"{_scalar(name)}: " if isinstance(value, dict) else ""
        comma = "," if place < len(inner) else ""
        yield from _lines(f"{pointer}/{step}", one, depth + 1, label, comma)
    yield pointer, f"{indent}{closing}{tail}"


def _scalar(value: Any) -> str:  # noqa: ANN401
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # beyond 64 bits, or half a surrogate pair: Python's own words for it
        return repr(value)
