"""Lists of floats, and of log probabilities, left where they are in a pickle.

An embedding has thousands of floats; an answer with log probabilities has, for each token, the
tuple ``(log probability, token id, None)``, which takes 16 bytes in a file of protocol 4 or 5 and
ten times as much as Python values.
"""

import re
from collections.abc import Iterator, Sequence
from mmap import mmap
from struct import Struct
from typing import overload

# BINFLOAT; BINFLOAT, an int, NONE, TUPLE3, MEMOIZE. A FRAME may stand before either.
_FRAME = rb"(?:\x95.{4}\0{4})?+"
_NUMBER = _FRAME + rb"G.{8}"
_LOGPROB = _NUMBER + _FRAME + rb"(?:K.|M..|J....)" + _FRAME + rb"N" + _FRAME + rb"\x87\x94"
_BLOCK = 64


class Form:
    """How the rows of one kind are found and decoded."""

    def __init__(self, row: bytes, parts: bytes) -> None:
        self.part = re.compile(parts, re.DOTALL)
        self.block = re.compile(rb"(?:(?:[(ea]|\x95.{4}\0{4})*+%s){%d}+" % (row, _BLOCK), re.DOTALL)
        # Between MARK and APPENDS as often as the pickler made batches, the last one by APPEND.
        self.matched = re.compile(
            rb"\((?:%(row)s){4,}+%(frame)se(?:%(frame)s\((?:%(row)s)++%(frame)se)*+"
            rb"(?:%(row)s%(frame)sa)?+" % {b"row": row, b"frame": _FRAME},
            re.DOTALL,
        )


NUMBERS = Form(_NUMBER, rb"(?:[(ea]|\x95.{4}\0{4})*+G(.{8})")
LOGPROBS = Form(
    _LOGPROB,
    rb"(?:[(ea]|\x95.{4}\0{4})*+G(.{8})" + _FRAME + rb"(?:K(.)|M(..)|J(....))" + _FRAME + rb"N"
    + _FRAME + rb"\x87\x94",
)  # fmt: skip
_FLOAT = Struct(">d")


class Rows(Sequence[object]):
    """A list of floats, or of tuples of a float, an int and None, as a range of opcodes.

    *others* is what the file appended to it later on.
    """

    __slots__ = ("_buffer", "_count", "_end", "_form", "_start", "others")

    def __init__(self, buffer: bytes | mmap, start: int, end: int, form: Form) -> None:
        self._buffer, self._start, self._end, self._form = buffer, start, end, form
        self._count = -1
        self.others: list[object] | None = None

    @property
    def own(self) -> int:
        """How many there are without *others*."""
        if self._count < 0:
            count, at = 0, self._start
            while (block := self._form.block.match(self._buffer, at, self._end)) is not None:
                count, at = count + _BLOCK, block.end()
            while (part := self._form.part.match(self._buffer, at, self._end)) is not None:
                count, at = count + 1, part.end()
            self._count = count
        return self._count

    def __len__(self) -> int:
        return self.own + len(self.others or ())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[object]:
        at, decoded = self._start, _number if self._form is NUMBERS else _logprob
        while (part := self._form.part.match(self._buffer, at, self._end)) is not None:
            yield decoded(part)
            at = part.end()
        yield from self.others or ()

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> list[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        """Decodes everything: to look at many, iterate."""
        return list(self)[index]

    def __repr__(self) -> str:
        return f"<Rows in {self._end - self._start} bytes>"


class Remembered:
    """Stands in the memo for the tuples of *rows*, the first of which has the number *first*."""

    __slots__ = ("first", "rows")

    def __init__(self, rows: Rows, first: int) -> None:
        self.rows, self.first = rows, first


def rows_at(buffer: bytes | mmap, at: int) -> tuple[Rows, int] | None:
    """The rows of a list whose MARK is at *at*, and where they end; None for other lists."""
    for form in (NUMBERS, LOGPROBS):
        if (found := form.matched.match(buffer, at)) is not None:
            return Rows(buffer, at, found.end(), form), found.end()
    return None


def has_tuples(rows: Rows) -> bool:
    """Whether each of *rows* is a tuple, which has a number in the memo."""
    return rows._form is LOGPROBS  # noqa: SLF001  (of this module)


def _number(part: re.Match[bytes]) -> float:
    number: float = _FLOAT.unpack(part[1])[0]
    return number


def _logprob(part: re.Match[bytes]) -> tuple[float, int, None]:
    octets, short, medium, long = part.groups()
    number: float = _FLOAT.unpack(octets)[0]
    if long is not None:
        return number, int.from_bytes(long, "little", signed=True), None
    return number, int.from_bytes(short or medium, "little"), None
