"""CUDA coredumps made up for tests: the bare structure of one, or whole ones."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MACHINE_CUDA, TYPE_CORE = 190, 4
_ROW = struct.Struct("<IIQQQQIIQQ")
_HEADER_BYTES = 64
_META, _DEVICES, _GLOBAL, _REGISTERS = 0x8000_0016, 0x8000_0009, 0x8000_0002, 0x8000_0005
_MOST_COUNTED = 0xFF00  # SHN_LORESERVE: more sections are counted in the first row


def coredump_bytes(
    padding_bytes: int = 4096,
    *,
    machine: int = MACHINE_CUDA,
    kind: int = TYPE_CORE,
    sections: int = 3,
    first_section: int = _META,
) -> bytes:
    """A whole coredump whose last section holds *padding_bytes*, which are never zero."""
    payloads = [b"meta" * 8, *[b"devices" * 16] * (sections - 2), b"\xa5" * padding_bytes]
    kinds = [first_section, *[_DEVICES] * (sections - 2), _GLOBAL]
    if first_section < 0x8000_0000:
        kinds = [first_section] * sections
    rows, body, offset = [], bytearray(), _HEADER_BYTES
    for kind_of_section, payload in zip(kinds, payloads, strict=True):
        rows.append(_ROW.pack(0, kind_of_section, 0, 0, offset, len(payload), 0, 0, 8, 0))
        body += payload
        offset += len(payload)
    count = len(rows) + 1
    counted = count if count < _MOST_COUNTED else 0
    rows.insert(0, _ROW.pack(0, 0, 0, 0, 0, 0 if counted else count, 0, 0, 0, 0))
    head = b"\x7fELF\x02\x01\x01\x33\x07" + b"\0" * 7
    head += struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, offset, 0, 64, 0, 0, 64, counted, 0
    )
    return bytes(head + body + b"".join(rows))


# Whole dumps: what a driver of r580 writes, by its public header.

STRINGS, IMAGE, SMS, GRIDS, BLOCKS, WARPS, LANES, MODULES, CONTEXTS = (
    3,
    0x8000_0007,
    0x8000_000B,
    0x8000_000C,
    0x8000_000D,
    0x8000_000E,
    0x8000_000F,
    0x8000_0010,
    0x8000_000A,
)
CODE_AT = 0x7F2E_6FBF_F000
FUNCTION_BYTES = 0x4000


@dataclass(frozen=True)
class Kernel:
    """A kernel on SMs *sms*, its threads *offsets* bytes into it, or into another function."""

    name: str
    sms: Sequence[int] = (0, 1)
    offsets: Sequence[int] = (0x300,)
    warps: int = 2
    size: tuple[int, int, int] = (24, 1, 1)
    block: tuple[int, int, int] = (512, 1, 1)
    status: int = 2
    valid_lanes: int = 0xFFFF_FFFF
    exception: int = 0  # of the first lane of the first warp on its last SM
    error_at: int | None = None  # bytes into the kernel
    inside: str | None = None  # the function that its threads are in, if not itself


@dataclass(frozen=True)
class Gpu:
    kernels: Sequence[Kernel] = ()
    sms: int = 132
    sm_exceptions: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # code, address
    arch: str = "sm_90"


class Elf:
    """Sections of an ELF file, one after another."""

    def __init__(self, kind: int = TYPE_CORE) -> None:
        self.kind = kind
        self.rows: list[list[int]] = [[0] * 10]
        self.payloads: list[bytes] = [b""]
        self.names = ["", ".shstrtab"]

    def add(
        self,
        name: str,
        kind: int,
        payload: bytes,
        *,
        link: int = 0,
        info: int = 0,
        row_bytes: int = 0,
        at: int = 0,
    ) -> int:
        self.names.insert(-1, name)
        self.rows.append([0, kind, 0, at, 0, len(payload), link, info, 8, row_bytes])
        self.payloads.append(payload)
        return len(self.rows) - 1

    def written(self) -> bytes:
        places, names = {}, bytearray(b"\0")
        for name in dict.fromkeys(self.names[1:]):
            places[name] = len(names)
            names += name.encode() + b"\0"
        rows = [list(row) for row in self.rows]
        for row, name in zip(rows[1:], self.names[1:], strict=False):
            row[0] = places[name]
        payloads = [*self.payloads, bytes(names)]
        rows.append([places[".shstrtab"], STRINGS, 0, 0, 0, len(names), 0, 0, 1, 0])
        return self._file(rows, payloads)

    def _file(self, rows: list[list[int]], payloads: list[bytes]) -> bytes:
        body, offset = bytearray(), _HEADER_BYTES
        for row, payload in zip(rows[1:], payloads[1:], strict=True):
            row[4] = offset
            body += payload
            offset += len(payload)
        count, names_in = len(rows), len(rows) - 1
        if count >= _MOST_COUNTED:
            rows[0][5], rows[0][6] = count, names_in
            count, names_in = 0, 0xFFFF
        head = b"\x7fELF\x02\x01\x01\x33\x07" + b"\0" * 7
        head += struct.pack(
            "<HHIQQQIHHHHHH",
            self.kind,
            MACHINE_CUDA,
            1,
            0,
            0,
            offset,
            0,
            64,
            0,
            0,
            64,
            count,
            names_in,
        )
        return head + bytes(body) + b"".join(_ROW.pack(*row) for row in rows)


class Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def at(self, text: str) -> int:
        place = len(self.data)
        self.data += text.encode() + b"\0"
        return place


def cubin_bytes(functions: Mapping[str, int]) -> bytes:
    """A relocated cubin with a section for each function, at its address."""
    elf = Elf(kind=2)
    for name, at in functions.items():
        elf.add(f".text.{name}", 1, b"\0" * FUNCTION_BYTES, at=at)
    return elf.written()


def dump_bytes(*gpus: Gpu, padding_bytes: int = 0, extra_row_bytes: int = 0) -> bytes:
    """A whole dump of *gpus*; rows are longer by *extra_row_bytes*, as a later driver's are."""
    return dump(*gpus, padding_bytes=padding_bytes, extra_row_bytes=extra_row_bytes).written()


def dump(*gpus: Gpu, padding_bytes: int = 0, extra_row_bytes: int = 0) -> Elf:
    elf, strings = Elf(), Strings()
    extra = b"\xee" * extra_row_bytes
    table = elf.add(".strtab", STRINGS, b"")
    meta = struct.pack("<QIIIIII", strings.at("driver"), 580, 82, 13, 0, 0x2F, 1_790_000_000)
    elf.add(".cudbg.meta", _META, meta + extra, row_bytes=len(meta + extra))
    rows = [_device_row(index, gpu, strings) + extra for index, gpu in enumerate(gpus)]
    devices = elf.add(".cudbg.devtbl", _DEVICES, b"".join(rows), row_bytes=88 + extra_row_bytes)
    for index, gpu in enumerate(gpus):
        _Writer(elf, devices, index, gpu, extra).write()
    elf.payloads[table] = bytes(strings.data)
    elf.rows[table][5] = len(strings.data)
    if padding_bytes:
        elf.add(".cudbg.global.0", _GLOBAL, b"\xa5" * padding_bytes)
    return elf


def _device_row(index: int, gpu: Gpu, strings: Strings) -> bytes:
    texts = [strings.at(text) for text in ("NVIDIA H100 80GB HBM3", "gh100", gpu.arch)]
    numbers = [index, 0x19 + index, 0, gpu.sms, 64, 32, 256, 7, 9, 0, 16, 0, 63, 7, 16, 0]
    return struct.pack("<QQQ16I", *texts, *numbers)


class _Writer:
    """The tables of one device."""

    def __init__(self, elf: Elf, devices: int, index: int, gpu: Gpu, extra: bytes) -> None:
        self.elf, self.devices, self.index, self.gpu, self.extra = elf, devices, index, gpu, extra
        self.base = CODE_AT + index * 0x100_0000
        names = [one for k in gpu.kernels for one in (k.name, k.inside) if one]
        self.functions = {
            name: self.base + at * FUNCTION_BYTES for at, name in enumerate(dict.fromkeys(names))
        }

    def write(self) -> None:
        self._code()
        grids = [self._grid(number, one) for number, one in enumerate(self.gpu.kernels)]
        self._table("gridtbl", GRIDS, grids, self.devices, self.index)
        sms = [self._sm(number) for number in range(self.gpu.sms)]
        table = self._table("smtbl", SMS, sms, self.devices, self.index)
        for sm in range(self.gpu.sms):
            held = [(number, k) for number, k in enumerate(self.gpu.kernels) if sm in k.sms]
            if held:
                self._blocks(table, sm, held)

    def _code(self) -> None:
        context = struct.pack("<QQQQII", 0xC0DE_0000, 0, 0, 0, self.index, 4711)
        contexts = self._table("ctxtbl", CONTEXTS, [context], self.devices, self.index)
        modules = self._table("modtbl", MODULES, [struct.pack("<Q", 0xABC0)], contexts, 0)
        image = cubin_bytes(self.functions)
        self.elf.add(f".cudbg.relfimg.dev{self.index}.ctx0", IMAGE, image, link=modules, info=0)

    def _grid(self, number: int, kernel: Kernel) -> bytes:
        handles = (622_721 + number, 0xC0DE_0000, 0x1111, self.functions[kernel.name], 0xABC0)
        row = struct.pack("<7Q", *handles, 0, 0x210)
        row += struct.pack("<4I", 2, 0, kernel.status, 96)
        row += struct.pack("<8I", *kernel.size, *kernel.block, 0, 4711)
        return row + struct.pack("<8I", 1, 1, 1, 0, 1, 1, 1, 0)

    def _sm(self, number: int) -> bytes:
        code, at = self.gpu.sm_exceptions.get(number, (0, 0))
        return struct.pack("<IIIIQIIIIQ", number, 0, code, bool(at), at, 0, 0, 0, 0, 0)

    def _blocks(self, table: int, sm: int, held: Sequence[tuple[int, Kernel]]) -> None:
        rows = [
            struct.pack("<QIIII", 622_721 + number, sm, 0, 0, 0) + b"\0" * 32 for number, _ in held
        ]
        blocks = self._table(f"ctatbl.sm{sm}", BLOCKS, rows, table, sm)
        for place, (_, kernel) in enumerate(held):
            faulty = bool(kernel.exception) and sm == kernel.sms[-1]
            self._warps(blocks, place, kernel, faulty=faulty)

    def _warps(self, blocks: int, place: int, kernel: Kernel, *, faulty: bool) -> None:
        start = self.functions[kernel.name]
        rows = []
        for number in range(kernel.warps):
            wrong = faulty and not number and kernel.error_at is not None
            at = start + (kernel.error_at or 0) if wrong else 0
            warp = struct.pack("<QIIIIII", at, number, kernel.valid_lanes, 1, 0, wrong, 0)
            rows.append(warp + b"\0" * 32)
        table = self._table("wptbl", WARPS, rows, blocks, place)
        stood = self.functions[kernel.inside or kernel.name]
        for number in range(kernel.warps):
            at = stood + kernel.offsets[number % len(kernel.offsets)]
            code = kernel.exception if faulty and not number else 0
            lanes = [
                struct.pack("<QQ10I", at, 0, lane, lane, 0, 0, code * (not lane), 1, 0, 0, 0, 0)
                for lane in range(32)
            ]
            self._table("lntbl", LANES, lanes, table, number)

    def _table(self, name: str, kind: int, rows: list[bytes], link: int, info: int) -> int:
        payload = b"".join(row + self.extra for row in rows)
        row_bytes = len(rows[0] + self.extra) if rows else 8
        named = f".cudbg.{name}.dev{self.index}"
        return self.elf.add(named, kind, payload, link=link, info=info, row_bytes=row_bytes)


def written_with_hole(path: Path, elf: Elf, *, hole_bytes: int, register_sections: int) -> None:
    """Write *elf* with *hole_bytes* of memory in it, and registers that lie in there."""
    data = elf.written()
    table_at = int.from_bytes(data[40:48], "little")
    rows = [list(row) for row in _ROW.iter_unpack(data[table_at:])]
    names_in = len(rows) - 1
    each = min(1024, hole_bytes // max(1, register_sections))
    memory = hole_bytes - each * register_sections
    rows += [
        [0, _REGISTERS, 0, 0, table_at + at * each, each, 0, at % 32, 8, 4]
        for at in range(register_sections)
    ]
    rows.append([0, _GLOBAL, 0, 0, table_at + each * register_sections, memory, 0, 0, 8, 1])
    rows[0][5], rows[0][6] = len(rows), names_in
    with path.open("wb") as out:
        head = struct.pack("<Q", table_at + hole_bytes)
        out.write(data[:40] + head + data[48:60] + struct.pack("<HH", 0, 0xFFFF))
        out.write(data[64:table_at])
        out.seek(table_at + hole_bytes)
        out.write(b"".join(_ROW.pack(*row) for row in rows))
