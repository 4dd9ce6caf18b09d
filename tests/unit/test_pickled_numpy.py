"""Numbers and arrays of numpy and torch: a number is read, of an array only its length."""

import struct

import pytest

from app.domain.dumps.containers import array_length
from app.domain.pickled import read_pickle


def scalar(code: bytes, held: bytes, module: bytes = b"numpy._core.multiarray") -> bytes:
    """As numpy pickles a number at protocol 3: a call with its type and its bytes."""
    dtype = (
        b"cnumpy\ndtype\n(X\x02\0\0\0" + code + b"I0\nI1\ntR(I3\nX\x01\0\0\0<NNNI-1\nI-1\nI0\ntb"
    )
    return (
        b"\x80\x03c" + module + b"\nscalar\n(" + dtype + b"C" + bytes([len(held)]) + held + b"tR."
    )


@pytest.mark.parametrize(
    ("code", "held", "number"),
    [
        (b"f8", struct.pack("<d", 1.5), 1.5),
        (b"f4", struct.pack("<f", 0.25), 0.25),
        (b"i8", struct.pack("<q", -7), -7),
        (b"u1", b"\xff", 255),
        (b"b1", b"\1", True),
    ],
    ids=["f8", "f4", "i8", "u1", "b1"],
)
@pytest.mark.parametrize("module", [b"numpy._core.multiarray", b"numpy.core.multiarray"])
def test_a_number_of_numpy_is_a_number(
    code: bytes, held: bytes, number: float, module: bytes
) -> None:
    read = read_pickle(scalar(code, held, module))

    assert (read.value, type(read.value), read.problem) == (number, type(number), None)
    assert read.blocked == ("numpy.dtype",)


@pytest.mark.parametrize(
    ("code", "held"),
    [(b"f8", b"\0"), (b"O8", bytes(8)), (b"V9", bytes(9))],
    ids=["short", "object", "void"],
)
def test_what_is_no_plain_number_stays_inert(code: bytes, held: bytes) -> None:
    assert "scalar" in repr(read_pickle(scalar(code, held)).value)


def array(shape: bytes, held: bytes) -> bytes:
    """As numpy pickles an array at protocol 3."""
    empty = b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntC\x01btR"
    return b"\x80\x03" + empty + b"(I1\n" + shape + b"NI0\nC" + bytes([len(held)]) + held + b"tb."


@pytest.mark.parametrize(
    ("shape", "length"),
    [
        (b"(I3\nt", 3),
        (b"(I1\nI4\nt", 4),
        (b"(I99999999\nt", None),
        (b"(I-1\nt", None),
        (b"N", None),
    ],
    ids=["flat", "one-row", "more-than-its-bytes", "negative", "none"],
)
def test_an_array_has_the_length_that_its_bytes_can_hold(shape: bytes, length: int | None) -> None:
    assert array_length(read_pickle(array(shape, bytes(32))).value) == length


def test_a_tensor_of_torch_has_the_length_of_its_shape() -> None:
    storage = b"ctorch.storage\n_load_from_bytes\n(C\x20" + bytes(32) + b"tR"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"I0\n(I4\nt(I1\nttR."

    assert array_length(read_pickle(b"\x80\x03" + tensor).value) == 4
    assert array_length([1, 2]) is None
