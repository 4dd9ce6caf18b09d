"""Coredumps that lie: an exact word, bounded work, and never an exception of ours."""

import gzip
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.coredump.inspect import inspect_coredump
from tests.coredump_bytes import Gpu, Kernel, coredump_bytes, dump, dump_bytes

NAME = "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"
GPU = Gpu([Kernel(NAME, sms=(0, 1), exception=14, error_at=0x40)], sms=4)
WHOLE = dump_bytes(GPU)
TABLE_AT = int.from_bytes(WHOLE[40:48], "little")
ROW_BYTES = 64
LINK, INFO, ROW_LENGTH, SIZE, OFFSET, KIND = 40, 44, 56, 32, 24, 4


class Counted:
    """Gives bytes, and counts what was asked for."""

    def __init__(self, data: bytes) -> None:
        self.data, self.bytes_read = data, 0

    def __call__(self, offset: int, length: int) -> bytes:
        assert offset >= 0
        assert length >= 0
        piece = self.data[offset : offset + length]
        self.bytes_read += len(piece)
        return piece


def inspected(data: bytes) -> Mapping[str, Any]:
    return inspect_coredump("core", "/core", len(data), Counted(data))


def section(kind: int, number: int = 0) -> int:
    """The place in the file of the row of the *number*-th section of *kind*."""
    count = (len(WHOLE) - TABLE_AT) // ROW_BYTES
    places = [TABLE_AT + at * ROW_BYTES for at in range(count)]
    found = [at for at in places if struct.unpack_from("<I", WHOLE, at + KIND)[0] == kind]
    return found[number]


def changed(*changes: tuple[int, int, str]) -> bytes:
    data = bytearray(WHOLE)
    for at, value, form in changes:
        struct.pack_into(f"<{form}", data, at, value)
    return bytes(data)


DEVICES, SMS, GRIDS, BLOCKS, WARPS, LANES, IMAGE = (
    0x8000_0009,
    0x8000_000B,
    0x8000_000C,
    0x8000_000D,
    0x8000_000E,
    0x8000_000F,
    0x8000_0007,
)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        pytest.param(b"", "Nothing is in it yet.", id="empty"),
        pytest.param(b"INFO: ready\n" * 30, "Not an ELF file.", id="log"),
        pytest.param(b"PK\3\4" + b"x" * 400, "This is a zip archive: unpack it", id="zip"),
        pytest.param(b"\x28\xb5\x2f\xfd" + b"x" * 400, "zstd -d", id="zstd"),
        pytest.param(coredump_bytes(machine=62), "a core of a host process (x86-64)", id="host"),
        pytest.param(coredump_bytes(kind=2), "code for a GPU (a cubin)", id="cubin"),
        pytest.param(WHOLE[:4] + b"\1" + WHOLE[5:], "32 bit", id="32-bit"),
        pytest.param(WHOLE[:5] + b"\2" + WHOLE[6:], "most significant byte first", id="big-endian"),
        pytest.param(WHOLE[:-10], "bytes. Nothing can be read of it", id="truncated"),
        pytest.param(WHOLE[:30], "Its header is not whole.", id="header-only"),
        pytest.param(gzip.compress(WHOLE)[:-9], "ends before its trailer", id="cut-gzip"),
        pytest.param(gzip.compress(WHOLE)[:-8] + bytes(8), "damaged", id="damaged-gzip"),
        pytest.param(gzip.compress(b"log" * 99), "inside is no ELF file", id="gzip-of-a-log"),
        pytest.param(gzip.compress(coredump_bytes(machine=62)), "host process", id="gzip-of-host"),
        pytest.param(
            changed((60, 0, "H"), (TABLE_AT + SIZE, 10**9, "Q")),
            "It claims to have 1000000000 sections.",
            id="a-billion-sections",
        ),
        pytest.param(
            changed((section(LANES) + OFFSET, 2**62, "Q")),
            f"It claims to need {2**62 + 32 * 56} bytes.",
            id="offset-beyond-the-end",
        ),
        pytest.param(
            changed((40, 2**64 - 1, "Q")),
            "It claims to need 184467440737095",
            id="table-beyond-64-bits",
        ),
        pytest.param(
            changed((section(LANES) + OFFSET, 2**64 - 10, "Q")),
            f"It claims to need {2**64 - 10 + 32 * 56} bytes.",
            id="end-that-wraps",
        ),
        pytest.param(
            changed((60, 0, "H"), (TABLE_AT + SIZE, 0, "Q")),
            "Its section table is not written yet.",
            id="no-sections",
        ),
        pytest.param(
            changed((60, 0, "H"), (TABLE_AT + SIZE, 2**64 - 1, "Q")),
            f"It claims to have {2**64 - 1} sections.",
            id="most-sections",
        ),
        pytest.param(gzip.compress(WHOLE)[:10], "ends before its trailer", id="gzip-header-only"),
        pytest.param(b"\x1f\x8b", "ends before its trailer", id="two-bytes-of-gzip"),
        pytest.param(gzip.compress(b""), "Nothing is in it yet.", id="gzip-of-nothing"),
        pytest.param(
            gzip.compress(gzip.compress(WHOLE)), "inside is a second layer of gzip", id="gzip-twice"
        ),
        pytest.param(
            gzip.compress(WHOLE) + b"INFO: done",
            "After its trailer come bytes that are not compressed.",
            id="gzip-and-a-log",
        ),
        pytest.param(b"\x04\x22\x4d\x18" + b"x" * 400, "lz4 -d", id="lz4"),
        pytest.param(b"7z\xbc\xaf\x27\x1c" + b"x" * 400, "a 7z archive", id="7z"),
    ],
)
def test_what_cannot_be_read_is_called_what_it_is(data: bytes, note: str) -> None:
    document = inspected(data)

    assert not document["complete"]
    assert note in document["note"]
    assert (document["kernels"], document["commands"]) == ([], [])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(
            changed((section(WARPS) + ROW_LENGTH, 2**63, "Q")),
            f"says its rows have {2**63} bytes; a row of warps has at least 32.",
            id="huge-rows",
        ),
        pytest.param(
            changed((section(GRIDS) + ROW_LENGTH, 8, "Q")),
            "says its rows have 8 bytes; a row of grids has at least 104.",
            id="short-rows",
        ),
        pytest.param(
            changed((section(BLOCKS) + LINK, 2**32 - 1, "I")),
            f"says it belongs to section {2**32 - 1}, which is no table of sms.",
            id="link-to-nothing",
        ),
        pytest.param(
            changed((section(LANES) + INFO, 500, "I")),
            "says it belongs to row 500 of section",
            id="row-that-is-not-there",
        ),
        pytest.param(changed((section(LANES) + OFFSET, 64, "Q")), "overlap.", id="overlapping"),
        pytest.param(
            changed((section(IMAGE) + SIZE, 40, "Q")), "should be a cubin, and is none.", id="cubin"
        ),
        pytest.param(
            changed((struct.unpack_from("<Q", WHOLE, section(DEVICES) + OFFSET)[0], 2**40, "Q")),
            f"A text is said to be at {2**40}, outside the string table.",
            id="text-outside",
        ),
    ],
)
def test_a_lie_inside_is_told_and_the_rest_is_read(data: bytes, problem: str) -> None:
    document = inspected(data)

    assert document["complete"]
    assert any(problem in told for told in document["problems"])
    assert document["devices"][0]["sms"] == 4


@pytest.mark.parametrize("at", [0, 4, 16, 63, 64, TABLE_AT, TABLE_AT + 63, TABLE_AT + 64])
def test_cut_at_a_boundary_of_its_structure_it_is_incomplete(at: int) -> None:
    document = inspected(WHOLE[:at])
    assert (document["complete"], document["kind"]) == (False, "incomplete")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(WHOLE + b"x" * 999, id="bytes-after-its-end"),
        pytest.param(gzip.compress(WHOLE) + bytes(512), id="gzip-filled-up-with-zeros"),
        pytest.param(gzip.compress(WHOLE[:99]) + gzip.compress(WHOLE[99:]), id="two-members"),
    ],
)
def test_what_is_odd_and_whole_is_read(data: bytes) -> None:
    document = inspected(data)
    assert document["complete"]
    assert document["exceptions"] == inspected(WHOLE)["exceptions"]


def test_links_in_a_circle_end() -> None:
    elf = dump(GPU)
    warps = next(at for at, row in enumerate(elf.rows) if row[1] == WARPS)
    blocks = next(at for at, row in enumerate(elf.rows) if row[1] == BLOCKS)
    elf.rows[blocks][6] = warps
    elf.rows[warps][6] = warps
    document = inspected(elf.written())

    assert document["complete"]
    assert len(document["problems"]) >= 2


def test_a_function_that_claims_all_addresses_names_nothing_wrongly() -> None:
    elf = dump(GPU)
    image = next(at for at, row in enumerate(elf.rows) if row[1] == IMAGE)
    cubin = bytearray(elf.payloads[image])
    table_at = int.from_bytes(cubin[40:48], "little")
    struct.pack_into("<Q", cubin, table_at + ROW_BYTES + 16, 1)  # where it begins
    struct.pack_into("<Q", cubin, table_at + ROW_BYTES + 32, 2**64 - 1)
    elf.payloads[image] = bytes(cubin)
    row = elf.rows[image]
    assert row[5] == len(cubin)
    document = inspected(elf.written())

    assert document["complete"]
    assert document["kernels"][0]["pcs"][0]["offset"] != "0x300"


def test_many_tables_over_the_same_bytes_are_read_within_a_bound() -> None:
    elf = dump(GPU)
    lanes = next(at for at, row in enumerate(elf.rows) if row[1] == LANES)
    for _ in range(3000):
        elf.names.insert(-1, "")
        elf.rows.append(list(elf.rows[lanes]))
        elf.payloads.append(b"")
    data = bytearray(elf.written())
    table_at = int.from_bytes(data[40:48], "little")
    (at,) = struct.unpack_from("<Q", data, table_at + lanes * ROW_BYTES + OFFSET)
    for number in range(len(elf.rows) - 3000, len(elf.rows)):
        struct.pack_into("<Q", data, table_at + number * ROW_BYTES + OFFSET, at)
    read = Counted(bytes(data))
    document = inspect_coredump("core", "/core", len(data), read)

    assert document["complete"]
    assert read.bytes_read < 3 * len(data) + 3000 * 32 * 64
    assert any("overlap" in told for told in document["problems"])


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(WHOLE) - 8), st.binary(min_size=1, max_size=8)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_bytes_changed_at_random_never_crash_the_reader_and_never_make_it_read_without_end(
    changes: list[tuple[int, bytes]], packed: bool
) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at : at + len(value)] = value
    file = gzip.compress(bytes(data), 1) if packed else bytes(data)
    read = Counted(file)
    document = inspect_coredump("core", "/core", len(file), read)

    assert document["complete"] in (True, False)
    assert document["note"]
    assert read.bytes_read < 40 * len(WHOLE)
    assert len(document["problems"]) <= 25


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, (len(WHOLE) - TABLE_AT) // ROW_BYTES - 1),
            st.sampled_from(
                [
                    (KIND, "I"),
                    (OFFSET, "Q"),
                    (SIZE, "Q"),
                    (LINK, "I"),
                    (INFO, "I"),
                    (ROW_LENGTH, "Q"),
                ]
            ),
            st.one_of(st.integers(0, 300), st.sampled_from([2**31, 2**32 - 1])),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_sections_changed_at_random_never_crash_the_reader(
    changes: list[tuple[int, tuple[int, str], int]],
) -> None:
    document = inspected(
        changed(
            *((TABLE_AT + row * ROW_BYTES + at, value, form) for row, (at, form), value in changes)
        )
    )

    assert document["note"]


@given(st.integers(0, len(WHOLE) - 1))
@settings(max_examples=200, deadline=None)
def test_a_dump_that_lacks_any_of_its_end_is_never_read(length: int) -> None:
    assert not inspected(WHOLE[:length])["complete"]
