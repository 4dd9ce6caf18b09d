"""Reading anywhere in a compressed file, within bounds."""

import gzip
import random

import pytest

from app.domain.coredump.unpacked import FIRST_STEP_BYTES, MOST_POINTS, Unpacked, first_bytes
from app.errors import Malformed, TooLarge

DICE = random.Random(7)
DATA = b"".join(DICE.randbytes(1000) * 3 for _ in range(1500))  # 4.5 MB, not all alike
PACKED = gzip.compress(DATA[:2_000_000], 1) + gzip.compress(DATA[2_000_000:], 6)


def unpacked(packed: bytes, max_bytes: int = 10**9) -> Unpacked:
    return Unpacked(len(packed), lambda at, length: packed[at : at + length], max_bytes=max_bytes)


def test_any_piece_is_what_was_packed_in_whatever_order_it_is_read() -> None:
    inside = unpacked(PACKED)

    assert inside.size_bytes == len(DATA)
    for _ in range(60):
        at, length = DICE.randrange(len(DATA)), DICE.choice([1, 64, 5000, 700_000])
        assert inside.read(at, length) == DATA[at : at + length]


def test_the_end_is_the_end() -> None:
    inside = unpacked(PACKED)

    assert inside.read(len(DATA) - 3, 10) == DATA[-3:]
    assert inside.read(len(DATA), 10) == b""


def test_points_are_thinned_out_so_that_memory_is_bounded() -> None:
    size_bytes = FIRST_STEP_BYTES * MOST_POINTS * 2
    inside = unpacked(gzip.compress(bytes(size_bytes), 1))

    assert inside.size_bytes == size_bytes
    assert len(inside._points) <= MOST_POINTS
    assert inside.read(size_bytes // 2, 5) == bytes(5)


def test_what_is_too_large_cut_or_damaged_is_refused() -> None:
    with pytest.raises(TooLarge):
        unpacked(PACKED, max_bytes=1_000_000)
    with pytest.raises(Malformed, match="ends before its trailer"):
        unpacked(PACKED[:-1])
    with pytest.raises(Malformed, match="damaged"):
        unpacked(PACKED[:-8] + bytes(8))
    with pytest.raises(Malformed, match="damaged"):
        first_bytes(lambda _at, length: (b"\x1f\x8b" + b"x" * 99)[:length], 10)
