"""Lists and tuples of ints, left where they are in a pickle.

A thousand token ids are 3 to 5 kB there and 36 kB as Python ints, and most are never looked at.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from mmap import mmap
from struct import iter_unpack
from typing import Literal, overload

# BININT1, BININT2, BININT; a long list has MARK and APPENDS between its parts, APPEND at its end.
_ONE = re.compile(rb"K.|M..|J....|[(ea]++(?:K.|M..|J....)", re.DOTALL)
_BLOCK = re.compile(rb"(?:K.|M..|J....|[(ea]++(?:K.|M..|J....)){64}+", re.DOTALL)
_MANY = re.compile(rb"(?:K.|M..|J....|[(ea]++(?:K.|M..|J....)){1,16384}+", re.DOTALL)
_STRETCH = re.compile(rb"(?:K.)++|(?:M..)++|(?:J....)++", re.DOTALL)
_LAYOUTS = {0x4B: "<xB", 0x4D: "<xH", 0x4A: "<xi"}  # unsigned, unsigned, signed


class Ints(Sequence[int]):
    """A list or tuple of ints as a range of opcodes. Iterating decodes them, a piece at a time.

    *others* is what the file appended to a list later on that was not in one range with the rest;
    empty but for files that were made for it.
    """

    __slots__ = ("_buffer", "_count", "_end", "_start", "kind", "others")

    def __init__(
        self, buffer: bytes | mmap, start: int, end: int, kind: Literal["list", "tuple"]
    ) -> None:
        self._buffer, self._start, self._end = buffer, start, end
        self._count = -1
        self.kind = kind
        self.others: list[object] | None = None

    def __len__(self) -> int:
        if self._count < 0:
            count, at = 0, self._start
            while (block := _BLOCK.match(self._buffer, at, self._end)) is not None:
                count, at = count + 64, block.end()
            self._count = count + len(_ONE.findall(self._buffer, at, self._end))
        return self._count

    def __iter__(self) -> Iterator[int]:
        for piece in self._pieces():
            for stretch in _STRETCH.finditer(piece):
                octets = stretch[0]
                yield from chain.from_iterable(iter_unpack(_LAYOUTS[octets[0]], octets))

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        """Decodes everything: to look at many, iterate."""
        return list(self)[index]

    def alone(self) -> Sequence[int] | None:
        """All ints of the list or tuple; None when the file put something else among them."""
        if self.others is None:
            return self
        later = [one for one in self.others if type(one) is int]
        return [*self, *later] if len(later) == len(self.others) else None

    def everything(self) -> Sequence[object]:
        return self if self.others is None else [*self, *self.others]

    def __repr__(self) -> str:
        return f"<Ints, a {self.kind} in {self._end - self._start} bytes>"

    def _pieces(self) -> Iterator[bytes]:
        """Its opcodes in pieces of which none is longer than 112 kiB."""
        start = self._start
        while (many := _MANY.match(self._buffer, start, self._end)) is not None:
            yield many[0]
            start = many.end()
