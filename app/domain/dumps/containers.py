"""Lists and tables in a dump, also those with a class of their own, and how long arrays are.

A class that is a list, a dict or a tuple to Python has a stand-in that holds what was put into it.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from app.domain.pickled.values import Inert, Octets, items_of

# How numpy and torch pickle an array: its bytes come first, its shape third.
_ARRAYS = (
    "numpy.core.numeric._frombuffer",
    "numpy._core.numeric._frombuffer",
    "torch._utils._rebuild_tensor_v2",
)
# Or as an empty one, whose state has version, shape, dtype, order of rows and bytes.
_RECONSTRUCTED = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
_MOST_DIMENSIONS = 8
_FEWEST_FIELDS = 4  # of a tuple with names


def list_in(value: object) -> Sequence[object] | None:
    """What is in a list or tuple, also of a class of its own; None for anything else."""
    if not isinstance(value, Inert):
        return items_of(value)
    if value.items:
        return value.items
    if value.state is not None or value.pairs or not isinstance(value.args, tuple):
        return None
    return value.args if len(value.args) >= _FEWEST_FIELDS else None


def table_in(value: object) -> Mapping[Any, Any] | None:
    """The entries of a table, also of a class of its own; None for anything else."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Inert) and value.pairs:
        return {key: one for key, one in value.pairs if isinstance(key, str)}
    return None


def array_length(value: object) -> int | None:
    """How many numbers are in an array of numpy or torch; None for anything else.

    None as well for an array that claims more of them than it has bytes.
    """
    if not isinstance(value, Inert):
        return None
    path = value.path or ""
    if path in _RECONSTRUCTED:
        return _length(value.state, 1, 4)
    return _length(value.args, 2, 0) if path in _ARRAYS else None


def _length(parts: object, shape_at: int, bytes_at: int) -> int | None:
    """The product of the shape among *parts*, as far as their bytes can hold so many."""
    if not isinstance(parts, tuple) or len(parts) <= max(shape_at, bytes_at):
        return None
    shape, held = parts[shape_at], _bytes_in(parts[bytes_at])
    if not isinstance(shape, tuple) or len(shape) > _MOST_DIMENSIONS or held is None:
        return None
    if not all(type(one) is int and 0 <= one <= held for one in shape):
        return None
    length = prod(shape)
    return length if length <= held else None


def _bytes_in(value: object) -> int | None:
    """The size of bytes, or of the storage of a tensor, which is a call with its bytes."""
    if isinstance(value, Inert) and isinstance(value.args, tuple) and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, Octets):
        return value.size_bytes
    return len(value) if isinstance(value, bytes) else None
