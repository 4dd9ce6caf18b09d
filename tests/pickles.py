"""Classes of every way to be pickled, and the comparison of what was read with what they are."""

import enum
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from app.domain.pickled.ints import Ints
from app.domain.pickled.rows import Rows
from app.domain.pickled.values import Global, Inert, Octets, Text, attributes


class Request:
    """Attributes in a dict, as SGLang's requests have them."""

    def __init__(self, **given: object) -> None:
        self.__dict__.update(given)


class Slotted:
    """Attributes in slots."""

    __slots__ = ("rid", "text")

    def __init__(self, rid: str, text: str) -> None:
        self.rid, self.text = rid, text


class Both(Slotted):
    """Attributes in slots and in a dict."""

    def __init__(self, rid: str, text: str, priority: int) -> None:
        super().__init__(rid, text)
        self.priority = priority


@dataclass
class Parameters:
    """A dataclass, whose state is its dict."""

    temperature: float = 0.7
    stop: list[str] = field(default_factory=list)


class Modality(enum.Enum):
    """An enum: a call with its value."""

    IMAGE = 1


class Span(NamedTuple):
    """A class that is made with arguments."""

    start: int
    end: int


class Ids(list[int]):
    """A list with a class of its own: items are appended to it."""


class Table(dict[str, int]):
    """A dict with a class of its own: keys are set in it."""


class Keyworded:
    """Made with keywords, from protocol 2 on."""

    def __new__(cls, size: int, *, unit: str) -> Self:
        made = super().__new__(cls)
        made.size, made.unit = size, unit
        return made

    size: int
    unit: str

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, str]]:
        return (self.size,), {"unit": self.unit}


class Stated:
    """Its state is no dict."""

    def __init__(self, times: tuple[float, ...]) -> None:
        self.times = times

    def __getstate__(self) -> tuple[float, ...]:
        return self.times

    def __setstate__(self, state: tuple[float, ...]) -> None:
        self.times = state


def same(real: object, read: object) -> bool:
    """Whether *read* says of *real* what it is, to the last field."""
    if isinstance(read, Inert):
        return _same_object(real, read)
    if isinstance(read, Global):
        return read.path == f"{real.__module__}.{real.__qualname__}"  # type: ignore[attr-defined]
    if isinstance(read, Text):
        return str(read) == real
    if isinstance(read, Octets):
        return bytes(read) == real
    if isinstance(read, Rows):
        return type(real) is list and _all_same(real, [*read])
    if isinstance(read, Ints):
        return type(real).__name__ == read.kind and _all_same(real, read.everything())
    if isinstance(real, float):
        return type(read) is float and (read == real or (math.isnan(real) and math.isnan(read)))
    return _same_container(real, read)


def _same_container(real: object, read: object) -> bool:
    if isinstance(real, bytearray | OrderedDict):
        real = bytes(real) if isinstance(real, bytearray) else dict(real)
    if type(real) is not type(read):
        return False
    if isinstance(real, list | tuple):
        return _all_same(real, read)
    if isinstance(real, dict) and isinstance(read, dict):
        return _all_same([*real], [*read]) and _all_same([*real.values()], [*read.values()])
    return real == read


def _all_same(real: object, read: object) -> bool:
    assert isinstance(real, list | tuple)
    assert isinstance(read, list | tuple | Ints)
    return len(real) == len(read) and all(map(same, real, read))


def _same_object(real: object, read: Inert) -> bool:
    cls = type(real)
    if read.path != f"{cls.__module__}.{cls.__qualname__}":
        return False
    if isinstance(real, enum.Enum):
        return read.args == (real.value,)
    if isinstance(real, Stated):
        return same(real.times, read.state)
    return (
        same(_attributes(real), dict(attributes(read)))
        and (not isinstance(real, Span) or _made_with(real, read))
        and (not isinstance(real, Ids) or _all_same(list(real), _base(read) or read.items))
        and (not isinstance(real, Table) or dict(real) == (_base(read) or dict(read.pairs)))
    )


def _base(read: Inert) -> object:
    """What protocols 0 and 1 give a reconstructed list, dict or tuple to begin with."""
    assert isinstance(read.args, tuple)
    return read.args[2] if len(read.args) == 3 else None


def _made_with(real: Span, read: Inert) -> bool:
    assert isinstance(read.args, tuple)
    return tuple(real) in (read.args, _base(read))


def _attributes(real: object) -> dict[str, object]:
    slots = [name for cls in type(real).__mro__ for name in getattr(cls, "__slots__", ())]
    inside = {name: getattr(real, name) for name in slots if hasattr(real, name)}
    return {**getattr(real, "__dict__", {}), **inside}
