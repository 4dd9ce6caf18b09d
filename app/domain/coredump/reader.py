"""From the bytes of a complete CUDA coredump to what its GPUs were doing.

Reads tables only, never memory or registers: a file of many GiB costs what its tables cost.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from app.domain.coredump.census import Census, Fault, GridKey
from app.domain.coredump.code import Address, Code, Function
from app.domain.coredump.collectives import collective_in
from app.domain.coredump.demangle import demangled
from app.domain.coredump.exceptions import exception_of
from app.domain.coredump.gpu_state import GpuException, GpuState, KernelOnDevice, Place
from app.domain.coredump.problems import Problems
from app.domain.coredump.sections import Read, Sections
from app.domain.coredump.tables import Grid, Modules, devices, grids, origin
from app.errors import Malformed

MOST_PLACES_SHOWN = 16
MOST_EXCEPTIONS = 256


def read_coredump(read: Read) -> GpuState:
    """What a file holds that ``shape_of`` found complete.

    Raises Malformed where the file gives fewer bytes than it did before.
    """

    def exactly(offset: int, length: int) -> bytes:
        data = read(offset, length)
        if len(data) < length:
            raise Malformed("The file became shorter while it was read.")
        return data

    problems = Problems()
    sections = Sections(exactly, problems)
    modules = Modules(sections)
    census = Census(sections)
    known_grids = {(grid.device, grid.id): grid for grid in grids(sections)}
    faults = census.faults()
    code = Code(modules.images(), exactly, problems)
    names = _Names(code, known_grids, census, faults)
    return GpuState(
        origin=origin(sections),
        devices=tuple(devices(sections)),
        contexts=tuple(modules.contexts()),
        kernels=_kernels(known_grids, census, names),
        exceptions=_exceptions(faults, names, sections),
        sections=sections.count,
        problems=tuple(problems.told),
    )


class _Names:
    """The functions of all addresses that are shown, looked up at once."""

    def __init__(
        self, code: Code, of: Mapping[GridKey, Grid], census: Census, faults: Iterable[Fault]
    ) -> None:
        self._grids = of
        entries = [self._address(key, grid.entry) for key, grid in of.items()]
        places = [self._address(key, at) for key, at in census.lanes]
        errors = [self._of_fault(one, one.at) for one in faults if one.at is not None]
        self._functions = code.functions([*entries, *places, *errors])
        self._kernels = {
            (key[0], function.name)
            for key, grid in of.items()
            if (function := self.at(key, grid.entry)) is not None
        }

    def at(self, key: GridKey, at: int) -> Function | None:
        return self._functions.get(self._address(key, at))

    def of_fault(self, fault: Fault) -> tuple[str | None, Function | None]:
        """The kernel that *fault* is of, and the function that its address is in."""
        function = None
        if fault.at is not None:
            function = self._functions.get(self._of_fault(fault, fault.at))
        if fault.grid is not None:
            grid = self._grids.get((fault.device, fault.grid))
            entry = self.at((fault.device, fault.grid), grid.entry) if grid else None
            return (entry.name if entry else None), function
        if function is not None and (fault.device, function.name) in self._kernels:
            return function.name, function
        return None, function

    def _of_fault(self, fault: Fault, at: int) -> Address:
        if fault.grid is None:
            return Address(fault.device, 0, 0, at)
        return self._address((fault.device, fault.grid), at)

    def _address(self, key: GridKey, at: int) -> Address:
        grid = self._grids.get(key)
        if grid is None:
            return Address(key[0], 0, 0, at)
        return Address(grid.device, grid.context, grid.module, at)


def _kernels(
    known: Mapping[GridKey, Grid], census: Census, names: _Names
) -> tuple[KernelOnDevice, ...]:
    """Grids of one shape and entry on one device are one kernel; the busiest first."""
    groups: dict[tuple[object, ...], list[GridKey]] = defaultdict(list)
    for key, grid in known.items():
        groups[grid.device, grid.entry, grid.size, grid.block, grid.status].append(key)
    places: dict[GridKey, list[int]] = defaultdict(list)
    for key, at in census.lanes:
        places[key].append(at)
    found = [_kernel(keys, known[keys[0]], places, census, names) for keys in groups.values()]
    return tuple(sorted(found, key=lambda one: (one.device, -one.lanes, -len(one.sms), one.entry)))


def _kernel(
    keys: list[GridKey],
    grid: Grid,
    places: Mapping[GridKey, list[int]],
    census: Census,
    names: _Names,
) -> KernelOnDevice:
    entry = names.at(keys[0], grid.entry)
    stood = _places(keys, places, census, names)
    mangled = entry.name if entry else None
    functions = [_plain(place.function) for place in stood if place.function]
    return KernelOnDevice(
        device=grid.device,
        mangled=mangled,
        entry=grid.entry,
        size=grid.size,
        block=grid.block,
        cluster=grid.cluster,
        status=grid.status,
        grids=len(keys),
        blocks=sum(census.blocks[key] for key in keys),
        warps=sum(census.warps_of[key] for key in keys),
        lanes=sum(place.lanes for place in stood),
        sms=tuple(sorted({sm for key in keys for sm in census.sms_of.get(key, ())})),
        places=tuple(stood[:MOST_PLACES_SHOWN]),
        collective=collective_in(_plain(mangled), functions),
    )


def _plain(mangled: str | None) -> str:
    """A name without its parameters, where that can be told."""
    known = demangled(mangled) if mangled else None
    return known.short if known else mangled or ""


def _places(
    keys: list[GridKey], places: Mapping[GridKey, list[int]], census: Census, names: _Names
) -> list[Place]:
    """Where the threads of these grids stood, most threads first."""
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    functions: dict[int, Function | None] = {}
    for key in keys:
        for at in places.get(key, ()):
            counts[at][0] += census.lanes[key, at]
            counts[at][1] += census.warps[key, at]
            functions[at] = names.at(key, at)
    stood = []
    for at, (lanes, warps) in counts.items():
        function = functions[at]
        name, offset = (function.name, at - function.start) if function else (None, None)
        stood.append(Place(at, name, offset, lanes, warps))
    return sorted(stood, key=lambda place: (-place.lanes, place.at))


def _exceptions(faults: list[Fault], names: _Names, sections: Sections) -> tuple[GpuException, ...]:
    """Those of threads, and those of SMs that no thread explains: its warps may have ended."""
    explained = {(one.device, one.sm, one.code) for one in faults if one.grid is not None}
    details = {
        (one.device, one.sm, one.code): sections.text(one.detail_at)
        for one in faults
        if one.detail_at
    }
    shown = [
        one
        for one in faults
        if one.grid is not None or (one.device, one.sm, one.code) not in explained
    ]
    if len(shown) > MOST_EXCEPTIONS:
        sections.problems.tell(f"{len(shown)} exceptions; {MOST_EXCEPTIONS} are shown.")
    found = []
    for fault in shown[:MOST_EXCEPTIONS]:
        kernel, function = names.of_fault(fault)
        detail = details.get((fault.device, fault.sm, fault.code)) or None
        found.append(_exception(fault, kernel, function, detail))
    return tuple(found)


def _exception(
    fault: Fault, kernel: str | None, function: Function | None, detail: str | None
) -> GpuException:
    at = fault.at
    name, offset = None, None
    if function is not None and at is not None:
        name, offset = function.name, at - function.start
    return GpuException(
        code=exception_of(fault.code),
        device=fault.device,
        sm=fault.sm,
        at=at,
        exact=fault.exact,
        kernel=kernel,
        function=name,
        offset=offset,
        block=fault.block,
        thread=fault.thread,
        lanes=fault.lanes,
        detail=detail,
    )
