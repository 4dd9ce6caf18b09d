"""Which function an address of a GPU belongs to, by the relocated cubins of a dump.

A cubin is an ELF file itself. Each function has a section ``.text.<mangled name>`` whose address
is where the driver put it. An address that lies in two functions lies in none that is told.
"""

import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.domain.coredump.problems import Problems
from app.domain.coredump.sections import MOST_NAME_BYTES, Read
from app.domain.coredump.tables import Image

MOST_TABLE_BYTES = 128 * 1024 * 1024  # of all cubins together: two million functions
_HEADER_BYTES = 64
_HEADER = struct.Struct("<4sBB10xHH20xQ10xHHH")
_ROW = struct.Struct("<IIQQQQIIQQ")
_ROWS_AT_ONCE = 4096
_CUDA = 190
_PROGBITS, _EXTENDED = 1, 0xFFFF
_TEXT = ".text."


@dataclass(frozen=True, slots=True)
class Address:
    """An address as a dump gives it; *context* and *module* are 0 where it does not say."""

    device: int
    context: int
    module: int
    at: int


@dataclass(frozen=True, slots=True)
class Function:
    """*name* is mangled, as the cubin has it."""

    name: str
    start: int


class Code:
    """The functions of all images of a dump; tables are read when an address needs them."""

    def __init__(self, images: Iterable[Image], read: Read, problems: Problems) -> None:
        self._images = list(images)
        self._read, self._problems = read, problems
        self._left_bytes = MOST_TABLE_BYTES

    def functions(self, addresses: Iterable[Address]) -> dict[Address, Function]:
        """The function of each address that lies in exactly one.

        The cubin of the module that the grid names is asked first; only what is not in it is
        looked for in the other cubins of that device.
        """
        wanted = set(addresses)
        found = self._in_own_modules(wanted)
        rest: dict[int, set[Address]] = defaultdict(set)
        for address in wanted - found.keys():
            rest[address.device].add(address)
        for device, missing in rest.items():
            images = [one for one in self._images if one.device in (device, None)]
            found.update(self._in(images, missing))
        return found

    def _in_own_modules(self, wanted: set[Address]) -> dict[Address, Function]:
        images: dict[tuple[int | None, ...], list[Image]] = defaultdict(list)
        for image in self._images:
            images[image.device, image.context, image.module].append(image)
        groups: dict[tuple[int, int, int], set[Address]] = defaultdict(set)
        for address in wanted:
            groups[address.device, address.context, address.module].add(address)
        found = {}
        for owner, group in groups.items():
            found.update(self._in(images.get(owner, []), group))
        return found

    def _in(self, images: Iterable[Image], wanted: set[Address]) -> dict[Address, Function]:
        """Those of *wanted* that lie in one function only of all *images*."""
        by_place: dict[int, list[Address]] = defaultdict(list)
        for address in wanted:
            by_place[address.at].append(address)
        places = sorted(by_place)
        found: dict[int, set[Function]] = defaultdict(set)
        for image in images:
            if places:
                for place, function in self._matches(image, places):
                    found[place].add(function)
        return {
            address: next(iter(functions))
            for place, functions in found.items()
            if len(functions) == 1
            for address in by_place[place]
        }

    def _matches(self, image: Image, places: list[int]) -> Iterator[tuple[int, Function]]:
        cubin = self._cubin(image)
        if cubin is None:
            return
        for start, size_bytes, name_at in cubin.code():
            first = bisect_left(places, start)
            if first < len(places) and places[first] < start + size_bytes:
                name = cubin.name(name_at)
                if name is not None:
                    for place in places[first : bisect_left(places, start + size_bytes)]:
                        yield place, Function(name, start)

    def _cubin(self, image: Image) -> "_Cubin | None":
        """What *image* holds, unless it is no cubin or the budget is used up: both are told."""
        section = image.section
        cubin = _Cubin.of(self._read, section.offset, section.size_bytes)
        if cubin is None:
            self._problems.tell(f"Section {section.index} should be a cubin, and is none.")
            return None
        self._left_bytes -= cubin.table_bytes
        if self._left_bytes < 0:
            self._problems.tell("There are more functions than are searched for names.")
            return None
        return cubin


@dataclass(frozen=True, slots=True)
class _Cubin:
    """An ELF file inside another: nothing outside its *size_bytes* is read."""

    read: Read
    offset: int
    size_bytes: int
    table_at: int
    count: int
    names: tuple[int, int]  # offset and size of the table of section names

    @classmethod
    def of(cls, read: Read, offset: int, size_bytes: int) -> "_Cubin | None":
        if size_bytes < _HEADER_BYTES:
            return None
        head = _HEADER.unpack(read(offset, _HEADER.size))
        magic, bits, order, _, machine, table_at, row_bytes, count, names_in = head
        if (magic, bits, order, machine, row_bytes) != (b"\x7fELF", 2, 1, _CUDA, _ROW.size):
            return None
        if table_at + _ROW.size > size_bytes:
            return None
        first = _ROW.unpack(read(offset + table_at, _ROW.size))
        count, names_in = count or first[5], first[6] if names_in == _EXTENDED else names_in
        if names_in >= count or table_at + count * _ROW.size > size_bytes:
            return None
        row = _ROW.unpack(read(offset + table_at + names_in * _ROW.size, _ROW.size))
        if row[4] + row[5] > size_bytes:
            return None
        return cls(read, offset, size_bytes, table_at, count, (row[4], row[5]))

    @property
    def table_bytes(self) -> int:
        return self.count * _ROW.size

    def code(self) -> Iterator[tuple[int, int, int]]:
        """Address, length and place of the name of each section that may be code."""
        for first in range(0, self.count, _ROWS_AT_ONCE):
            length = min(_ROWS_AT_ONCE, self.count - first) * _ROW.size
            data = self.read(self.offset + self.table_at + first * _ROW.size, length)
            for name_at, kind, _, start, _, size_bytes, *_ in _ROW.iter_unpack(data):
                if kind == _PROGBITS and start and size_bytes:
                    yield start, size_bytes, name_at

    def name(self, at: int) -> str | None:
        """The function that a section is named after; None: it is no code."""
        offset, size_bytes = self.names
        length = max(0, min(MOST_NAME_BYTES, size_bytes - at))
        raw, ended, _ = self.read(self.offset + offset + at, length).partition(b"\0")
        text = raw.decode("ascii", "replace")
        return text.removeprefix(_TEXT) if ended and text.startswith(_TEXT) else None
