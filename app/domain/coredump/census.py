"""Where every thread stood: blocks, warps and lanes of all SMs, counted.

A dump has a table of blocks for each SM, one of warps for each block, one of threads for each
warp. Each hangs under the one before: three steps, whatever the links say.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from app.domain.coredump.exceptions import NONE
from app.domain.coredump.sections import Kind, Layout, Section, Sections

MOST_PLACES = 100_000  # different (grid, address) pairs; a real dump has a few thousand
MOST_FAULTS = 10_000
_SMS = Layout("SMs", "II", 1024, later=("IIQIIII", "Q"))
_BLOCKS = Layout("blocks", "QIII4x", 1024)
_WARPS = Layout("warps", "Q6I", 128)
_LANES = Layout("threads", "QQ8I", 128)

GridKey = tuple[int, int]  # device, grid id: the same id on two devices is two grids
Dim = tuple[int, int, int]
Above = TypeVar("Above")


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception as one table has it; *block* and *thread* are those of its first lane.

    What a whole SM reports has no grid, no block and no thread, and counts no lanes.
    """

    device: int
    sm: int
    code: int
    at: int | None
    exact: bool  # *at* is the address of the error, not only where the thread stood
    grid: int | None = None
    block: Dim | None = None
    thread: Dim | None = None
    lanes: int = 0
    detail_at: int | None = None  # of the driver's own words, in the string table


@dataclass(frozen=True, slots=True)
class _Sm:
    device: int
    id: int


@dataclass(frozen=True, slots=True)
class _Block:
    sm: _Sm
    grid: int
    index: Dim


@dataclass(frozen=True, slots=True)
class _Warp:
    block: _Block
    error_at: int | None
    valid_lanes: int


class Census:
    """Counts per grid and address, and the faults, in one walk over the tables."""

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self.lanes: Counter[tuple[GridKey, int]] = Counter()
        self.warps: Counter[tuple[GridKey, int]] = Counter()
        self.blocks: Counter[GridKey] = Counter()
        self.warps_of: Counter[GridKey] = Counter()
        self.sms_of: dict[GridKey, set[int]] = defaultdict(set)
        self._faults: dict[tuple[int, int, int, int, int], Fault] = {}
        self._of_sms: list[Fault] = []
        sms = self._sms()
        blocks = self._blocks(sms)
        self._lanes(self._warps(blocks))

    def faults(self) -> list[Fault]:
        """Of lanes first, each once for its SM, code, address and grid; then those of SMs."""
        return [*self._faults.values(), *self._of_sms]

    def _sms(self) -> dict[int, list[_Sm]]:
        found = {}
        for section in self._sections.of(Kind.SMS):
            self._sections.above(section, Kind.DEVICES)
            sms = []
            for row in self._sections.rows(section, _SMS):
                sm = _Sm(section.info, row[0])
                sms.append(sm)
                if row[2]:
                    at = row[4] if row[3] else None
                    fault = Fault(sm.device, sm.id, row[2], at, exact=True, detail_at=row[9])
                    self._of_sms.append(fault)
            found[section.index] = sms
        return found

    def _blocks(self, sms: dict[int, list[_Sm]]) -> dict[int, list[_Block]]:
        found = {}
        for section, sm in self._under(Kind.BLOCKS, Kind.SMS, sms):
            blocks = [
                _Block(sm, row[0], (row[1], row[2], row[3]))
                for row in self._sections.rows(section, _BLOCKS)
            ]
            for block in blocks:
                self.blocks[sm.device, block.grid] += 1
                self.sms_of[sm.device, block.grid].add(sm.id)
            found[section.index] = blocks
        return found

    def _warps(self, blocks: dict[int, list[_Block]]) -> dict[int, list[_Warp]]:
        found = {}
        for section, block in self._under(Kind.WARPS, Kind.BLOCKS, blocks):
            warps = [
                _Warp(block, row[0] if row[5] else None, row[2])
                for row in self._sections.rows(section, _WARPS)
            ]
            self.warps_of[block.sm.device, block.grid] += len(warps)
            found[section.index] = warps
        return found

    def _lanes(self, warps: dict[int, list[_Warp]]) -> None:
        for section, warp in self._under(Kind.LANES, Kind.WARPS, warps):
            key = (warp.block.sm.device, warp.block.grid)
            seen: Counter[int] = Counter()
            for at, _, lane, x, y, z, code, *_ in self._sections.rows(section, _LANES):
                if warp.valid_lanes >> (lane & 31) & 1:
                    seen[at] += 1
                if code != NONE:
                    self._fault(warp, code, at, (x, y, z))
            for at, count in seen.items():
                self._count((key, at), count)

    def _count(self, place: tuple[GridKey, int], lanes: int) -> None:
        if place not in self.lanes and len(self.lanes) >= MOST_PLACES:
            self._sections.problems.tell(f"Only {MOST_PLACES} places in the code were counted.")
            return
        self.lanes[place] += lanes
        self.warps[place] += 1

    def _fault(self, warp: _Warp, code: int, at: int, thread: Dim) -> None:
        block, exact = warp.block, warp.error_at is not None
        where = at if warp.error_at is None else warp.error_at
        key = (block.sm.device, block.sm.id, code, where, block.grid)
        first = self._faults.get(key)
        if first is not None:
            self._faults[key] = replace(first, lanes=first.lanes + 1)
        elif len(self._faults) < MOST_FAULTS:
            self._faults[key] = Fault(*key[:4], exact, block.grid, block.index, thread, lanes=1)
        else:
            self._sections.problems.tell(f"Only {MOST_FAULTS} exceptions were listed.")

    def _under(
        self, kind: Kind, above: Kind, rows: Mapping[int, Sequence[Above]]
    ) -> Iterator[tuple[Section, Above]]:
        """Each table of *kind*, with the row that it hangs under; others are told."""
        for section in self._sections.of(kind):
            parent = self._sections.above(section, above)
            if parent is None:
                continue
            known = rows.get(parent.index, ())
            if section.info < len(known):
                yield section, known[section.info]
            else:
                self._sections.problems.tell(
                    f"Section {section.index} says it belongs to row {section.info} of section"
                    f" {parent.index}, which has {len(known)}."
                )
