"""Functions by their addresses, in a cubin that a real compiler made."""

import struct
from pathlib import Path

from app.domain.coredump.code import Address, Code
from app.domain.coredump.problems import Problems
from app.domain.coredump.sections import Section
from app.domain.coredump.tables import Image
from tests.coredump_bytes import CODE_AT, cubin_bytes

CUBIN = Path(__file__).parents[1] / "data" / "coredump" / "two_kernels.cubin"
FILL, REDUCE = "_Z4fillPf", "_Z6reduceIfEvN4ours4PairIT_EEPS2_"


def relocated(cubin: bytes, start: int) -> bytes:
    """*cubin* with the addresses that a loader gives to its code: one section after another."""
    data = bytearray(cubin)
    (table_at,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    for row in range(table_at, table_at + count * 64, 64):
        kind, flags, _, _, size_bytes = struct.unpack_from("<IQQQQ", data, row + 4)
        if kind == 1 and flags & 4:  # code
            struct.pack_into("<Q", data, row + 16, start)
            start += size_bytes
    return bytes(data)


def image(at: int, size_bytes: int, module: int | None = 7) -> Image:
    return Image(Section(1, 0x8000_0007, at, size_bytes, 0, 0, 0, 0), 0, 5, module)


def test_the_code_of_a_real_cubin_is_found_by_its_addresses() -> None:
    data = relocated(CUBIN.read_bytes(), CODE_AT)
    code = Code([image(0, len(data))], lambda at, length: data[at : at + length], Problems())
    addresses = [Address(0, 5, 7, CODE_AT + offset) for offset in (0, 0x17F, 0x180, 0x57F, 0x580)]
    found = code.functions(addresses)

    assert [found[one].name if one in found else None for one in addresses] == [
        FILL,
        FILL,
        REDUCE,
        REDUCE,
        None,
    ]


def test_a_cubin_that_was_not_relocated_names_nothing() -> None:
    data = CUBIN.read_bytes()
    code = Code([image(0, len(data))], lambda at, length: data[at : at + length], Problems())

    assert code.functions([Address(0, 5, 7, 0x10), Address(0, 5, 7, 0xB80)]) == {}


def test_the_own_module_comes_first_and_two_others_are_one_too_many() -> None:
    one, other = cubin_bytes({FILL: CODE_AT}), cubin_bytes({REDUCE: CODE_AT})
    data = one + other
    images = [image(0, len(one), module=1), image(len(one), len(other), module=2)]
    code = Code(images, lambda at, length: data[at : at + length], Problems())
    own, neither = Address(0, 5, 2, CODE_AT + 4), Address(0, 5, 3, CODE_AT + 4)
    found = code.functions([own, neither])

    assert found[own].name == REDUCE
    assert neither not in found


def test_what_is_no_cubin_is_told() -> None:
    problems = Problems()
    code = Code([image(0, 400)], lambda _, length: b"x" * length, problems)

    assert code.functions([Address(0, 5, 7, CODE_AT)]) == {}
    assert problems.told == ["Section 1 should be a cubin, and is none."]
