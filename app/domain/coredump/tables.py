"""What the driver knew of its devices, contexts, modules and grids."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.domain.coredump.sections import Kind, Layout, Section, Sections

MOST_DEVICES = 64  # CUDBG_MAX_DEVICES
_DEVICES = Layout("devices", "QQQ12I", MOST_DEVICES)
_CONTEXTS = Layout("contexts", "QQQQII", 1024)
_MODULES = Layout("modules", "Q", 262_144)
_GRIDS = Layout("grids", "7Q12I", 65_536, later=("4I",))
_META = Layout("metadata", "Q6I", 1)
_STATUS = {0: "invalid", 1: "pending", 2: "active", 3: "sleeping", 4: "ended", 5: "undetermined"}

Dim = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Origin:
    """Which driver wrote the dump, and when (seconds since 1970)."""

    generator: str | None
    driver: str
    cuda: str
    flags: int
    written_at_seconds: int


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU that the process could see; *status* other than 0: the driver could not read it."""

    index: int
    name: str | None
    chip: str | None
    arch: str
    pci_bus: int
    sms: int
    status: int


@dataclass(frozen=True, slots=True)
class Context:
    device: int
    id: int
    thread: int  # the host thread that owns it
    modules: int


@dataclass(frozen=True, slots=True)
class Grid:
    """One launch of a kernel; *entry* is the address of its code."""

    device: int
    id: int
    context: int
    entry: int
    module: int
    status: str
    size: Dim
    block: Dim
    cluster: Dim | None


@dataclass(frozen=True, slots=True)
class Image:
    """A relocated cubin, and the module it is of; None: its links lead nowhere."""

    section: Section
    device: int | None
    context: int | None
    module: int | None


def origin(sections: Sections) -> Origin | None:
    """None: written by a driver before r565."""
    for section in sections.of(Kind.META)[:1]:
        for name_at, major, minor, cuda_major, cuda_minor, flags, at in sections.rows(
            section, _META
        ):
            generator = sections.text(name_at)
            cuda = f"{cuda_major}.{cuda_minor}"
            return Origin(generator, f"{major}.{minor:02}", cuda, flags, at)
    return None


def devices(sections: Sections) -> list[Device]:
    found: list[Device] = []
    for section in sections.of(Kind.DEVICES)[:1]:
        for index, row in enumerate(sections.rows(section, _DEVICES)):
            name, chip, arch = (sections.text(at) for at in row[:3])
            _, pci_bus, _, sms, _, _, _, _, major, minor, _, status = row[3:]
            arch = arch or f"sm_{major}{minor}"
            found.append(Device(index, name, chip, arch, pci_bus, sms, status))
    return found


def grids(sections: Sections) -> Iterator[Grid]:
    left = _GRIDS.most_rows  # over all devices
    for section in sections.of(Kind.GRIDS):
        sections.above(section, Kind.DEVICES)
        for row in sections.rows(section, _GRIDS):
            if not left:
                sections.problems.tell(f"Only the first {_GRIDS.most_rows} grids were read.")
                return
            left -= 1
            yield _grid(section.info, row)


def _grid(device: int, row: tuple[int, ...]) -> Grid:
    status = _STATUS.get(row[9], f"status {row[9]}")
    cluster = None if row[19] is None else (row[19], row[20], row[21])
    size, block = (row[11], row[12], row[13]), (row[14], row[15], row[16])
    return Grid(device, row[0], row[1], row[3], row[4], status, size, block, cluster)


class Modules:
    """Contexts, and whose code each image is."""

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._contexts = self._rows_of_contexts()
        self._handles = {
            section.index: [row[0] for row in sections.rows(section, _MODULES)]
            for section in sections.of(Kind.MODULES)
        }
        self._context_of = {
            section.index: self._context(section) for section in sections.of(Kind.MODULES)
        }

    def contexts(self) -> list[Context]:
        counts: dict[tuple[int, int], int] = {}
        for index, handles in self._handles.items():
            owner = self._context_of[index]
            if owner is not None:
                counts[owner] = counts.get(owner, 0) + len(handles)
        return [
            Context(device, id_, thread, counts.get((device, id_), 0))
            for device, rows in self._contexts.values()
            for id_, thread in rows
        ]

    def images(self) -> list[Image]:
        return [self._image(section) for section in self._sections.of(Kind.IMAGE)]

    def _rows_of_contexts(self) -> Mapping[int, tuple[int, list[tuple[int, int]]]]:
        """Of each table of contexts: its device, and id and thread of its rows."""
        found = {}
        for section in self._sections.of(Kind.CONTEXTS):
            self._sections.above(section, Kind.DEVICES)
            rows = [(row[0], row[5]) for row in self._sections.rows(section, _CONTEXTS)]
            found[section.index] = (section.info, rows)
        return found

    def _context(self, modules: Section) -> tuple[int, int] | None:
        """Device and context that a table of modules is of."""
        above = self._sections.above(modules, Kind.CONTEXTS)
        if above is None:
            return None
        device, rows = self._contexts[above.index]
        return (device, rows[modules.info][0]) if modules.info < len(rows) else None

    def _image(self, section: Section) -> Image:
        above = self._sections.above(section, Kind.MODULES)
        owner = None if above is None else self._context_of[above.index]
        if above is None or owner is None:
            return Image(section, None, None, None)
        handles = self._handles[above.index]
        module = handles[section.info] if section.info < len(handles) else None
        return Image(section, *owner, module)
