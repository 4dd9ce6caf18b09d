"""What a pickle holds once it was read without running it: plain data, stand-ins, and views.

Plain are None, bool, int, float, str, bytes, list, tuple, dict, set and frozenset. What a class
or a callable would have made is an ``Inert``. What is long stays where it is in the buffer:
``Text``, ``Octets``, ``Ints`` and ``Rows`` are ranges of it, and read it when they are asked.

Values may nest as deeply as the file is long, and may hold themselves: whoever walks them counts
its steps and does not recurse.
"""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from mmap import mmap

from app.domain.pickled.ints import Ints
from app.domain.pickled.rows import Rows

Buffer = bytes | mmap
# How protocols 0 and 1 make any object, in Python 3 and 2; the class is the first argument.
_RECONSTRUCTORS = ("copyreg._reconstructor", "copy_reg._reconstructor", "copyreg.__newobj__")
NOTHING: Mapping[str, object] = {}
_UTF8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class Global:
    """A class or callable that was named. It was never looked up."""

    module: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


class Inert:
    """A stand-in for what calling or instantiating *made_from* would have given.

    *made_from* is a Global, or whatever else the file put there. *state* is what the last BUILD
    gave, None without one; *items* were appended or added to it, *pairs* were set in it.
    """

    __slots__ = ("args", "items", "keywords", "made_from", "pairs", "state")

    def __init__(self, made_from: object, args: object, keywords: object = None) -> None:
        self.made_from = made_from
        self.args = args
        self.keywords = keywords
        self.state: object = None
        self.items: list[object] | tuple[()] = ()
        self.pairs: list[tuple[object, object]] | tuple[()] = ()

    def add(self, items: Iterable[object]) -> None:
        """Note what was appended or added to it."""
        self.items = self.items or []
        self.items += items

    def set(self, pairs: Iterable[tuple[object, object]]) -> None:
        """Note what was set in it by key."""
        self.pairs = self.pairs or []
        self.pairs += pairs

    @property
    def path(self) -> str | None:
        """The name of its class, or of what was to make it; None if that has none."""
        named = self.made_from
        if isinstance(named, Global) and named.path in _RECONSTRUCTORS:
            named = self.args[0] if isinstance(self.args, tuple) and self.args else None
        return named.path if isinstance(named, Global) else None

    def __repr__(self) -> str:  # never of what is inside: that may be endless
        return f"<Inert {self.path}>"


class Text:
    """A long string, left in the buffer. ``str(text)`` reads it."""

    __slots__ = ("_buffer", "_end", "_start")

    def __init__(self, buffer: Buffer, start: int, end: int) -> None:
        self._buffer, self._start, self._end = buffer, start, end

    @property
    def size_bytes(self) -> int:
        """Its length in UTF-8."""
        return self._end - self._start

    def beginning(self, most_bytes: int) -> str:
        """At most its first *most_bytes*; a character that is cut there is left out."""
        piece = self._buffer[self._start : min(self._end, self._start + most_bytes)]
        return _UTF8("replace").decode(piece)  # not final: what is cut waits for more

    def __str__(self) -> str:
        """The string; what is not UTF-8 in it becomes U+FFFD."""
        return _decoded(self._buffer[self._start : self._end])

    def __repr__(self) -> str:
        return f"<Text of {self.size_bytes} bytes>"


class Octets:
    """A long bytes object, left in the buffer. ``bytes(octets)`` copies it."""

    __slots__ = ("_buffer", "_end", "_start")

    def __init__(self, buffer: Buffer, start: int, end: int) -> None:
        self._buffer, self._start, self._end = buffer, start, end

    @property
    def size_bytes(self) -> int:
        return self._end - self._start

    def __bytes__(self) -> bytes:
        return self._buffer[self._start : self._end]

    def __repr__(self) -> str:
        return f"<Octets, {self.size_bytes}>"


def attributes(value: object) -> Mapping[str, object]:
    """What the state of an Inert sets by name: its dict, with that of its slots over it.

    Empty for everything else. Keys that are not strings are left out.
    """
    state = value.state if isinstance(value, Inert) else None
    if isinstance(state, dict):
        return _named(state)
    if isinstance(state, tuple) and len(state) == 2:
        both = [_named(part) for part in state if isinstance(part, dict)]
        return {**both[0], **both[-1]} if both else NOTHING
    return NOTHING


def _named(state: dict[object, object]) -> Mapping[str, object]:
    if {*map(type, state)} <= {str}:
        return state  # type: ignore[return-value]
    return {key: value for key, value in state.items() if isinstance(key, str)}


def text_of(value: object) -> str | None:
    """The string that *value* is; None when it is none."""
    return value if isinstance(value, str) else str(value) if isinstance(value, Text) else None


def ints_of(value: object) -> Sequence[int] | None:
    """The ints of a list or tuple that holds nothing else; None for anything else.

    Long ones are not decoded: ``len()`` of them is cheap, iterating decodes.
    """
    if isinstance(value, Ints):
        return value.alone()
    if isinstance(value, list | tuple) and {*map(type, value)} <= {int}:
        return value
    return None


def items_of(value: object) -> Sequence[object] | None:
    """What is in a list or a tuple, in whichever way it is held; None for anything else."""
    if isinstance(value, Ints):
        return value.everything()
    return value if isinstance(value, list | tuple | Rows) else None


def _decoded(octets: bytes) -> str:
    try:
        return octets.decode("utf-8", "surrogatepass")  # as pickle does
    except UnicodeDecodeError:
        return octets.decode("utf-8", "replace")
