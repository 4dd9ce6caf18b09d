"""Figures, switches and names out of a hostile record, or None and what is wrong with them."""

import re
from functools import lru_cache
from math import isfinite
from typing import Any

from app.domain.dumps.recorded import Figure
from app.domain.pickled.ints import Ints
from app.domain.pickled.rows import Rows
from app.domain.pickled.values import Global, Inert, Octets, Text

NAME_CHARACTERS = 120
_LARGEST_COUNT = 1 << 40
_LARGEST_FIGURE = 1e15
_LAST_MOMENT = 4_102_444_800.0  # the year 2100
_MOST_SAMPLING = 40
_KINDS: dict[type, str] = {
    type(None): "nothing", bool: "a switch", int: "a number", float: "a number", str: "a text",
    Text: "a text", Ints: "a list of numbers", Rows: "a list", list: "a list", tuple: "a tuple",
    dict: "a table",
    bytes: "bytes", Octets: "bytes", set: "a set", frozenset: "a set", Global: "a class",
}  # fmt: skip
_SAMPLING_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def escaped(text: str, limit: int = NAME_CHARACTERS) -> str:
    """*text* on one line, cut to *limit*, without characters that a terminal or page obeys."""
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in shown)[:limit]
    return shown if len(text) <= limit else f"{shown[: limit - 1]}…"


KINDS = frozenset(_KINDS.values())


def kind_of(value: object) -> str:
    """What *value* is, in a word for a person; never its contents."""
    if isinstance(value, Inert):
        return f"an object of {escaped(value.path or 'something unnamed')}"
    return _KINDS.get(type(value), type(value).__name__)


class Looked:
    """Looks at one record's values and notes as a sentence what cannot be used."""

    __slots__ = ("problems",)

    def __init__(self) -> None:
        self.problems: list[str] = []

    def count(self, name: str, value: object) -> int | None:
        """A number of things: whole and not negative; None where nothing is told."""
        if value is None:
            return None
        if type(value) is int and 0 <= value < _LARGEST_COUNT:
            return value
        self.problems.append(f"{name} is no count ({_said(value)})")
        return None

    def moment(self, name: str, value: object) -> float | None:
        """Seconds since 1970, between then and the year 2100."""
        if value is None:
            return None
        if type(value) in (float, int) and 0 <= value < _LAST_MOMENT:  # type: ignore[operator]
            return float(value)  # type: ignore[arg-type]
        self.problems.append(f"{name} is no time ({_said(value)})")
        return None

    def switch(self, name: str, value: object) -> bool | None:
        """On, off or not told."""
        if value is None or value is True or value is False:
            return value
        if isinstance(value, list) and value and isinstance(value[0], bool):
            return value[0]  # of a batch: one switch a request
        self.problems.append(f"{name} is no switch ({_said(value)})")
        return None

    def name(self, name: str, value: object) -> str | None:
        """A short text that names something, safe to print."""
        if value is None:
            return None
        if type(value) is str:
            short = len(value) <= NAME_CHARACTERS and value.isprintable()
            return value if short else escaped(value)
        self.problems.append(f"{name} is no text ({_said(value)})")
        return None

    def sampling(self, value: object) -> dict[str, Figure]:
        """The numbers and switches among sampling parameters; of a batch, those of its first."""
        if isinstance(value, list | tuple) and value:
            value = value[0]
        if not isinstance(value, dict):
            if value is not None:
                self.problems.append(f"sampling_params is no table ({_said(value)})")
            return {}
        found: dict[str, Figure] = {}
        for name, setting in value.items():
            if isinstance(setting, int | float) and is_name(name):
                if is_figure(setting):
                    found[name] = setting
                else:
                    self.problems.append(f"{name} is no usable number ({_said(setting)})")
                if len(found) >= _MOST_SAMPLING:
                    break
        return found


def is_figure(value: Any) -> bool:  # noqa: ANN401  (whatever a record has)
    """Whether *value* is a number or switch that JSON and a database keep as it is."""
    if type(value) is int:
        return -_LARGEST_FIGURE < value < _LARGEST_FIGURE
    if type(value) is float:
        return isfinite(value) and abs(value) < _LARGEST_FIGURE
    return type(value) is bool


@lru_cache(maxsize=1024)  # the same few names in every request
def is_name(name: object) -> bool:
    """Whether *name* is one that a parameter of a request has."""
    return type(name) is str and _SAMPLING_NAME.fullmatch(name) is not None


def _said(value: object) -> str:
    """*value* for a sentence: numbers as they are up to a length, of all else only the kind."""
    if type(value) is float:
        return f"{value:g}"
    if type(value) is int:
        return str(value) if -_LARGEST_FIGURE < value < _LARGEST_FIGURE else "a huge number"
    return kind_of(value)
