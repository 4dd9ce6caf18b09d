"""The sections of a CUDA coredump and the rows of its tables: bounded, and nothing is believed.

Types, links and rows are those of NVIDIA's public ``cudacoredump.h``. ``sh_link`` names the table
above, ``sh_info`` the row in it, ``sh_entsize`` the length of a row. Fields are only ever
appended, so a row may be longer than what is known here, or end before its newer fields.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from app.domain.coredump.problems import Problems

Read = Callable[[int, int], bytes]  # (offset, length) → exactly so many bytes, or it raises

MOST_KEPT = 262_144  # eight GPUs with a table for each warp have 100 000
MOST_ROWS = 6_000_000  # of all tables; eight GPUs with every warp in use have 2 200 000 lanes
MOST_ROW_BYTES = 4096
MOST_NAME_BYTES = 16_384

_ROW = struct.Struct("<IIQQQQIIQQ")
_HEADER = struct.Struct("<40xQ10xHHH")  # where the table is, its row length, count, names
_ROWS_AT_ONCE = 4096
_EXTENDED = 0xFFFF  # SHN_XINDEX: the first row tells
_OVERLAPS_TOLD = 3


class Kind(IntEnum):
    """``sh_type`` of what is read; registers, memory and call stacks are not."""

    STRINGS = 3
    IMAGE = 0x8000_0007  # a relocated cubin
    DEVICES = 0x8000_0009
    CONTEXTS = 0x8000_000A
    SMS = 0x8000_000B
    GRIDS = 0x8000_000C
    BLOCKS = 0x8000_000D
    WARPS = 0x8000_000E
    LANES = 0x8000_000F
    MODULES = 0x8000_0010
    META = 0x8000_0016


_KINDS = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Section:
    index: int
    kind: int
    offset: int
    size_bytes: int
    link: int
    info: int
    row_bytes: int
    name_at: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A row: *fields* of the first drivers, then groups that *later* ones appended."""

    what: str
    fields: str
    most_rows: int
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Header:
    table_at: int
    count: int
    names_in: int  # index of the section with the names of sections

    @classmethod
    def of(cls, read: Read) -> "Header":
        """Of a file whose table was found to fit by ``coredump_file.shape_of``."""
        table_at, _, count, names_in = _HEADER.unpack(read(0, _HEADER.size))
        first = _ROW.unpack(read(table_at, _ROW.size))
        return cls(table_at, count or first[5], first[6] if names_in == _EXTENDED else names_in)


class Sections:
    """The sections that are read, by kind, each in the order of the file."""

    def __init__(self, read: Read, problems: Problems) -> None:
        self.read, self.problems = read, problems
        self._rows_left = MOST_ROWS
        header = Header.of(read)
        self.count = header.count
        self._by_kind: dict[int, list[Section]] = {kind: [] for kind in Kind}
        self._by_index: dict[int, Section] = {}
        self._keep(header)
        self._look_for_overlaps()
        self._names = self._by_index.get(header.names_in)
        self._strings = self._string_table()

    def of(self, kind: Kind) -> list[Section]:
        return self._by_kind[kind]

    def above(self, section: Section, kind: Kind) -> Section | None:
        """The table that *section* hangs under, if it is one of *kind*; told if it is not."""
        parent = self._by_index.get(section.link)
        if parent is not None and parent.kind == kind:
            return parent
        self.problems.tell(
            f"Section {section.index} says it belongs to section {section.link},"
            f" which is no table of {kind.name.lower()}."
        )
        return None

    def rows(self, section: Section, layout: Layout) -> Iterator[tuple[Any, ...]]:
        """The rows of *section*; newer fields that they do not have are None."""
        row_bytes = section.row_bytes or section.size_bytes
        known = struct.calcsize(f"<{layout.fields}")
        if not known <= row_bytes <= MOST_ROW_BYTES:
            if section.size_bytes:
                self.problems.tell(
                    f"Section {section.index} says its rows have {row_bytes} bytes;"
                    f" a row of {layout.what} has at least {known}."
                )
            return
        count = min(section.size_bytes // row_bytes, layout.most_rows)
        if count * row_bytes != section.size_bytes:
            self.problems.tell(
                f"Section {section.index} has {section.size_bytes} bytes for {layout.what};"
                f" {count} rows of {row_bytes} were read."
            )
        if count > self._rows_left:
            self.problems.tell(f"Only the first {MOST_ROWS} rows were read.")
            return
        self._rows_left -= count
        shape, missing = _shape(layout, row_bytes)
        for row in shape.iter_unpack(self.read(section.offset, count * row_bytes)):
            yield row + missing

    def text(self, at: int) -> str | None:
        """The string at *at* of the string table; None: there is none, which is told."""
        if self._strings is None or at >= self._strings.size_bytes:
            self.problems.tell(f"A text is said to be at {at}, outside the string table.")
            return None
        return self._string(self._strings, at)

    def _keep(self, header: Header) -> None:
        for first in range(0, header.count, _ROWS_AT_ONCE):
            wanted = min(_ROWS_AT_ONCE, header.count - first)
            data = self.read(header.table_at + first * _ROW.size, wanted * _ROW.size)
            for index, row in enumerate(_ROW.iter_unpack(data), start=first):
                if row[1] in _KINDS:
                    if len(self._by_index) == MOST_KEPT:
                        self.problems.tell(f"Only the first {MOST_KEPT} tables were read.")
                        return
                    self._add(index, row)

    def _add(self, index: int, row: tuple[int, ...]) -> None:
        name_at, kind, _, _, offset, size_bytes, link, info, _, row_bytes = row
        section = Section(index, kind, offset, size_bytes, link, info, row_bytes, name_at)
        self._by_index[index] = section
        self._by_kind[kind].append(section)

    def _look_for_overlaps(self) -> None:
        end, before, told = 0, 0, 0
        for section in sorted(self._by_index.values(), key=lambda one: one.offset):
            if section.size_bytes and section.offset < end and told < _OVERLAPS_TOLD:
                told += 1
                self.problems.tell(f"Sections {before} and {section.index} overlap.")
            if section.offset + section.size_bytes > end:
                end, before = section.offset + section.size_bytes, section.index

    def _string_table(self) -> Section | None:
        """The texts of the tables: ``.strtab``, which may be that of the section names as well."""
        tables = self.of(Kind.STRINGS)
        if self._names is not None:
            for table in tables:
                if self._string(self._names, table.name_at) == ".strtab":
                    return table
        return next((one for one in tables if one is not self._names), self._names)

    def _string(self, table: Section, at: int) -> str:
        data = self.read(table.offset + at, max(0, min(MOST_NAME_BYTES, table.size_bytes - at)))
        return data.split(b"\0", 1)[0].decode("utf-8", "replace")


@lru_cache(maxsize=512)
def _shape(layout: Layout, row_bytes: int) -> tuple[struct.Struct, tuple[None, ...]]:
    """How to unpack a row of that length, and a None for each field that it lacks."""
    fields, missing = layout.fields, 0
    for group in layout.later:
        size = struct.calcsize(f"<{fields}{group}")
        if missing or size > row_bytes:
            missing += len(struct.unpack(f"<{group}", bytes(struct.calcsize(f"<{group}"))))
        else:
            fields += group
    padding = row_bytes - struct.calcsize(f"<{fields}")
    return struct.Struct(f"<{fields}{padding}x"), (None,) * missing
