"""Numbers of numpy, which are a call with their type and their bytes: read as plain numbers.

By numpy's ``scalar.__reduce__``: ``scalar(dtype, bytes)``, where the state of the dtype has the
byte order.
"""

from struct import error as StructError  # noqa: N812
from struct import unpack

from app.domain.pickled.values import Inert

_DTYPE = "numpy.dtype"
_LAYOUTS = {
    "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q",
    "u8": "Q", "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip
_ORDERS = ("<", ">")


def numpy_scalar(args: tuple[object, ...]) -> int | float | bool | None:
    """The number that *args* of ``scalar`` make; None for a type that is no plain number."""
    if len(args) != 2 or not isinstance(args[0], Inert) or not isinstance(args[1], bytes):
        return None
    layout = _layout(args[0])
    if layout is None:
        return None
    try:
        (number,) = unpack(layout, args[1])
    except StructError:  # not as many bytes as the type has
        return None
    told: int | float | bool = number
    return told


def _layout(dtype: Inert) -> str | None:
    """How struct reads a number of *dtype*."""
    if dtype.path != _DTYPE or not isinstance(dtype.args, tuple) or not dtype.args:
        return None
    code = dtype.args[0]
    letter = _LAYOUTS.get(code) if isinstance(code, str) else None
    if letter is None:
        return None
    state = dtype.state
    order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
    return f"{order if order in _ORDERS else '<'}{letter}"
