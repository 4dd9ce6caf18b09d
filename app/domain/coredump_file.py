"""How much of a CUDA coredump is there: told from its header and section table alone.

A CUDA coredump is an ELF64 file of type ET_CORE for the machine EM_CUDA whose sections are of the
types that NVIDIA's public ``cudacoredump.h`` gives. The table stands at the end, and large dumps
have more sections than the header can count. Sizes in a file are claims: a structure that fits
says nothing about parts that were never written, nor about who still writes.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

HEADER_BYTES = 64
MAX_SECTIONS = 4_194_304  # a table of 256 MiB; eight GPUs with a section for each warp have 70 000
MAX_UNPACKED_BYTES = 16 * 1024**3
MAX_BYTES = 1024**5  # of a dump; what claims to need more was not written by a driver

_MAGIC, _GZIP = b"\x7fELF", b"\x1f\x8b"
_CLASS_64, _LITTLE_ENDIAN = 2, 1
_ET_CORE, _EM_CUDA = 4, 190
_ROW = struct.Struct("<IIQQQQIIQQ")
_ROWS_AT_ONCE = 4096
_NO_BYTES_IN_FILE = (0, 8)  # SHT_NULL, SHT_NOBITS
_CUDA_SECTIONS = range(0x8000_0001, 0x8000_0100)
_UNPACK_BYTES = 1024 * 1024
_NOT_YET = "its section table is not written yet"
_GZIP_OR_ZLIB_WITH_HEADER = 31  # zlib's wbits for gzip alone: checks CRC and length in the trailer

Kind = Literal["not an ELF", "not a CUDA coredump", "incomplete", "complete", "gzip"]
Read = Callable[[int, int], bytes]  # (offset, length) → at most so many bytes


@dataclass(frozen=True, slots=True)
class Shape:
    """What a file is by its structure. *needs_bytes* is its full size, None where not yet told."""

    kind: Kind
    says: str
    needs_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Table:
    offset: int
    count: int  # 0: too many for the header, the first row tells


def shape_of(size_bytes: int, read: Read) -> Shape:
    """The shape of a file of *size_bytes*; reads its header, and its table piece by piece."""
    head = read(0, HEADER_BYTES)
    if head.startswith(_GZIP):
        return Shape("gzip", "compressed: its structure cannot be checked without unpacking it")
    table = _table_of(head)
    if isinstance(table, Shape):
        return table
    counted = _counted(table, size_bytes, read)
    if isinstance(counted, Shape):
        return counted
    return _by_sections(counted, size_bytes, read)


def packed_shape(pieces: Iterable[bytes], *, max_bytes: int = MAX_UNPACKED_BYTES) -> Shape:
    """The shape of a gzip file that nobody writes any more, unpacked piece by piece and dropped.

    "complete": the trailer is there, its sum is right, and a CUDA coredump is inside. "gzip": it
    holds more than *max_bytes*.
    """
    head, length = b"", 0
    stream = _Unpacked()
    try:
        for piece in stream.pieces(pieces):
            head = (head + piece[:HEADER_BYTES])[:HEADER_BYTES]
            length += len(piece)
            if length > max_bytes:
                return Shape("gzip", "compressed, and too large to be unpacked for a check")
    except zlib.error:
        return Shape("incomplete", "its compressed data are damaged")
    if not stream.ended:
        return Shape("incomplete", "compressed, and it ends before its trailer")
    inside = _table_of(head)
    if isinstance(inside, Shape):
        return inside
    return Shape("complete", "compressed; its trailer is valid")


class _Unpacked:
    """Bounded pieces of what a gzip stream holds; *ended* once the last trailer was checked."""

    def __init__(self) -> None:
        self.ended = False

    def pieces(self, packed: Iterable[bytes]) -> Iterator[bytes]:
        engine = zlib.decompressobj(_GZIP_OR_ZLIB_WITH_HEADER)
        for piece in packed:
            rest = piece
            while rest:
                if self.ended:  # another member follows, or the zeros that fill up a block
                    rest = rest.lstrip(b"\0")
                    if not rest:
                        break
                    engine, self.ended = zlib.decompressobj(_GZIP_OR_ZLIB_WITH_HEADER), False
                yield engine.decompress(rest, _UNPACK_BYTES)
                self.ended = engine.eof
                rest = engine.unused_data if engine.eof else engine.unconsumed_tail


def _table_of(head: bytes) -> _Table | Shape:
    """Where the section table is, or what speaks against a CUDA coredump."""
    if not head.strip(b"\0"):
        return Shape("incomplete", "nothing is in it yet")
    if not head.startswith(_MAGIC[: len(head)]):
        return Shape("not an ELF", "not an ELF file")
    if len(head) < HEADER_BYTES:
        return Shape("incomplete", "its header is not whole", HEADER_BYTES)
    kind, machine = struct.unpack_from("<HH", head, 16)
    if (head[4], head[5], kind, machine) != (_CLASS_64, _LITTLE_ENDIAN, _ET_CORE, _EM_CUDA):
        return Shape(
            "not a CUDA coredump", f"an ELF file of type {kind} for machine {machine}, not of CUDA"
        )
    (offset,) = struct.unpack_from("<Q", head, 40)
    row_bytes, count = struct.unpack_from("<HH", head, 58)
    if not offset:
        return Shape("incomplete", "it does not say yet where its section table will be")
    if row_bytes != _ROW.size:
        return Shape("not a CUDA coredump", "its section table is not one of ELF64")
    return _Table(offset, count)


def _counted(table: _Table, size_bytes: int, read: Read) -> _Table | Shape:
    """*table* with its true number of rows, once all of them are there."""
    count = table.count
    if not count:
        first = read(table.offset, _ROW.size)
        if len(first) < _ROW.size:
            return _incomplete(table.offset + _ROW.size, size_bytes)
        count = _ROW.unpack(first)[5]
    if count > MAX_SECTIONS:
        return Shape("not a CUDA coredump", f"it claims to have {count} sections")
    if not count:
        return Shape("incomplete", _NOT_YET)
    if table.offset + count * _ROW.size > size_bytes:
        return _incomplete(table.offset + count * _ROW.size, size_bytes)
    return _Table(table.offset, count)


def _by_sections(table: _Table, size_bytes: int, read: Read) -> Shape:
    """Whether every section that *table* lists ends inside the file."""
    needs_bytes, of_cuda, empty_rows, kind = table.offset + table.count * _ROW.size, False, 0, 0
    for first in range(0, table.count, _ROWS_AT_ONCE):
        wanted = min(_ROWS_AT_ONCE, table.count - first) * _ROW.size
        rows = read(table.offset + first * _ROW.size, wanted)
        if len(rows) < wanted:
            return _incomplete(needs_bytes, size_bytes)
        for _, kind, _, _, offset, length, *_ in _ROW.iter_unpack(rows):
            of_cuda = of_cuda or kind in _CUDA_SECTIONS
            empty_rows += not kind
            if kind not in _NO_BYTES_IN_FILE:
                needs_bytes = max(needs_bytes, offset + length)
    if needs_bytes > size_bytes:
        return _incomplete(needs_bytes, size_bytes)
    if not kind or (empty_rows > 1 and not of_cuda):  # one is empty, the first; not the last
        return Shape("incomplete", _NOT_YET, needs_bytes)
    if not of_cuda:
        return Shape("not a CUDA coredump", "it has none of the sections of a CUDA coredump")
    return Shape("complete", f"all of its {table.count} sections are there", needs_bytes)


def _incomplete(needs_bytes: int, size_bytes: int) -> Shape:
    if needs_bytes > MAX_BYTES:
        return Shape("not a CUDA coredump", f"it claims to need {needs_bytes} bytes")
    return Shape("incomplete", f"{size_bytes} of at least {needs_bytes} bytes", needs_bytes)
