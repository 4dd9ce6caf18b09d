import gzip
import os
from collections.abc import Iterator

import pytest

from app.domain.coredump_file import Shape, packed_shape, shape_of
from tests.coredump_bytes import coredump_bytes

DUMP = coredump_bytes(300)


def shape(data: bytes, size_bytes: int | None = None) -> Shape:
    size = len(data) if size_bytes is None else size_bytes
    return shape_of(size, lambda offset, length: data[offset : offset + length])


def test_a_whole_dump_is_complete_and_tells_its_size() -> None:
    assert (shape(DUMP).kind, shape(DUMP).needs_bytes) == ("complete", len(DUMP))


def test_a_dump_that_lacks_any_of_its_bytes_is_incomplete() -> None:
    assert {shape(DUMP[:length]).kind for length in range(len(DUMP))} == {"incomplete"}


def test_space_reserved_for_a_dump_is_not_complete_before_its_table_is_written() -> None:
    for length in range(len(DUMP) - 64):
        # The first four bytes may be there without the rest of the header.
        if not 1 <= length < 64:
            assert shape(DUMP[:length].ljust(len(DUMP), b"\0")).kind == "incomplete"


def test_a_table_that_is_written_from_its_end_is_not_complete_before_its_start_is_there() -> None:
    at = int.from_bytes(DUMP[40:48], "little")
    late = DUMP[:at] + b"\0" * 192 + DUMP[at + 192 :]

    assert shape(late).kind == "complete"  # one section of CUDA is there, and all of its bytes
    assert shape(DUMP[:at] + b"\0" * 128 + coredump_bytes(first_section=1)[-128:]).kind == (
        "incomplete"
    )


def test_more_sections_than_the_header_can_count_are_all_looked_at() -> None:
    many = coredump_bytes(300, sections=70_000)

    assert shape(many).kind == "complete"
    assert shape(many[:-64]).kind == "incomplete"
    assert shape(many[: many.index(b"\xa5") + 100]).kind == "incomplete"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(b"", "incomplete", id="empty"),
        pytest.param(b"\0" * 5000, "incomplete", id="zeros"),
        pytest.param(b"\x7fEL", "incomplete", id="three-bytes"),
        pytest.param(b"INFO: ready", "not an ELF", id="log"),
        pytest.param(coredump_bytes(machine=62), "not a CUDA coredump", id="cpu-core"),
        pytest.param(coredump_bytes(kind=2), "not a CUDA coredump", id="cubin"),
        pytest.param(coredump_bytes(first_section=1), "not a CUDA coredump", id="no-cuda-section"),
        pytest.param(DUMP[:58] + b"\x20" + DUMP[59:], "not a CUDA coredump", id="rows-of-32"),
        pytest.param(DUMP[:40] + b"\0" * 8 + DUMP[48:], "incomplete", id="no-table-yet"),
        pytest.param(gzip.compress(DUMP), "gzip", id="compressed"),
    ],
)
def test_what_is_no_whole_dump_is_called_what_it_is(data: bytes, kind: str) -> None:
    assert shape(data).kind == kind


def test_a_table_of_absurd_length_is_not_read() -> None:
    table = DUMP[:60] + b"\0\0" + DUMP[62:]
    at = int.from_bytes(DUMP[40:48], "little")
    claims = table[: at + 32] + (2**40).to_bytes(8, "little") + table[at + 40 :]

    assert shape(claims).kind == "not a CUDA coredump"


def test_random_bytes_never_raise_and_are_never_complete() -> None:
    for _ in range(300):
        noise = DUMP[:20] + os.urandom(44) + os.urandom(200)
        assert shape(noise).kind != "complete"


def in_pieces(data: bytes, size: int = 7) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def test_a_compressed_dump_is_complete_with_a_valid_trailer_only() -> None:
    packed = gzip.compress(DUMP)
    damaged = packed[:-8] + b"\1\2\3\4" + packed[-4:]

    assert packed_shape(in_pieces(packed)).kind == "complete"
    assert packed_shape(in_pieces(packed[:-20] + gzip.compress(b"more"))).kind == "incomplete"
    assert packed_shape(in_pieces(packed + gzip.compress(b"more"))).kind == "complete"
    assert packed_shape(in_pieces(packed[:-1])).kind == "incomplete"
    assert packed_shape(in_pieces(damaged)).kind == "incomplete"
    assert packed_shape(in_pieces(b"")).kind == "incomplete"


def test_something_else_that_is_compressed_is_no_dump() -> None:
    assert packed_shape([gzip.compress(b"INFO: ready")]).kind == "not an ELF"


def test_a_compressed_file_that_unpacks_without_end_is_not_followed() -> None:
    bomb = gzip.compress(DUMP + b"\0" * 5_000_000)

    assert packed_shape(in_pieces(bomb), max_bytes=2_000_000).kind == "gzip"
