"""Reading at any place of what a gzip stream holds, in bounded memory and without writing it.

The stream is unpacked once from its start, and the state of the unpacker kept at points on the
way; a read goes on from the last point before it. Reads in the order of the file cost one more
unpacking altogether.
"""

import zlib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.errors import Malformed, TooLarge

MOST_POINTS = 256  # of 40 to 70 kB each
FIRST_STEP_BYTES = 1024 * 1024
_PIECE_BYTES = 65_536
_OUT_BYTES = 262_144
_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib's wbits for gzip alone: checks sum and length of the trailer

Read = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class _Point:
    """Where an unpacker stood: how much it had given, and what it will read next."""

    out: int
    packed_at: int
    rest: bytes
    engine: Any  # zlib's decompressor has no public type


def first_bytes(read: Read, length: int) -> bytes:
    """The start of what a gzip file unpacks to: enough to see what it cannot be."""
    try:
        return zlib.decompressobj(_GZIP).decompress(read(0, _PIECE_BYTES), length)
    except zlib.error as error:
        raise Malformed("Its compressed data are damaged.") from error


class Unpacked:
    """What is inside a gzip file of *size_bytes*; raises Malformed where it is damaged or cut."""

    def __init__(self, size_bytes: int, read: Read, *, max_bytes: int) -> None:
        self._size_bytes, self._read, self._max_bytes = size_bytes, read, max_bytes
        self._engine: Any = zlib.decompressobj(_GZIP)
        self._rest, self._packed_at, self._out = b"", 0, 0
        self._buffer, self._buffer_at = b"", 0
        self._step = FIRST_STEP_BYTES
        self._points = [self._point()]
        self.size_bytes = self._whole()

    def read(self, offset: int, length: int) -> bytes:
        """Exactly those bytes, or fewer at the end."""
        end = min(offset + length, self.size_bytes)
        if offset >= end:
            return b""
        if not self._buffer_at <= offset <= self._out:
            self._go_to(offset)
        pieces = []
        while offset < end:
            inside = self._buffer[offset - self._buffer_at : end - self._buffer_at]
            pieces.append(inside)
            offset += len(inside)
            if offset < end and not self._more():
                raise Malformed("Its compressed data ended earlier than before.")
        return b"".join(pieces)

    def _whole(self) -> int:
        """How much there is, unpacking everything and keeping points."""
        while self._more():
            if self._out > self._max_bytes:
                raise TooLarge(f"It unpacks to more than {self._max_bytes} bytes.")
            if self._out - self._points[-1].out >= self._step and not self._engine.eof:
                self._points.append(self._point())
                if len(self._points) > MOST_POINTS:
                    self._points = self._points[::2]
                    self._step *= 2
        if not self._engine.eof:
            raise Malformed("It is compressed, and ends before its trailer.")
        return self._out

    def _more(self) -> bool:
        """The next piece into the buffer; False at the end of the file."""
        while True:
            if not self._rest:
                self._rest = self._read(self._packed_at, _PIECE_BYTES)
                self._packed_at += len(self._rest)
                if not self._rest:
                    return False
            if self._engine.eof and not self._next_member():
                continue
            try:
                piece = self._engine.decompress(self._rest, _OUT_BYTES)
            except zlib.error as error:
                raise Malformed("Its compressed data are damaged.") from error
            engine = self._engine
            self._rest = engine.unused_data if engine.eof else engine.unconsumed_tail
            if piece:
                self._buffer, self._buffer_at = piece, self._out
                self._out += len(piece)
                return True

    def _next_member(self) -> bool:
        """Whether another member follows, or only the zeros that fill up a block."""
        self._rest = self._rest.lstrip(b"\0")
        if not self._rest:
            return False
        if not _MAGIC.startswith(self._rest[: len(_MAGIC)]):
            raise Malformed("After its trailer come bytes that are not compressed.")
        self._engine = zlib.decompressobj(_GZIP)
        return True

    def _point(self) -> _Point:
        return _Point(self._out, self._packed_at, self._rest, self._engine.copy())

    def _go_to(self, offset: int) -> None:
        """Stand at the last point before *offset*, or where we are if that is nearer."""
        point = self._points[bisect_right(self._points, offset, key=lambda one: one.out) - 1]
        if not point.out <= self._out <= offset:
            self._engine, self._rest = point.engine.copy(), point.rest
            self._packed_at, self._out = point.packed_at, point.out
            self._buffer, self._buffer_at = b"", point.out
