"""Lists and tables in a dump, also those with a class of their own, and how long arrays are.

A class that is a list, a dict or a tuple to Python has a stand-in that holds what was put into it.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from app.domain.pickled.values import Inert, Octets, items_of

# How numpy and torch pickle an array, and which argument is its shape, which its bytes.
_ARRAYS = {
    "numpy.core.numeric._frombuffer": (2, 0),
    "numpy._core.numeric._frombuffer": (2, 0),
    "torch._utils._rebuild_tensor_v2": (2, 0),
}
_RECONSTRUCTED = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
_MOST_DIMENSIONS = 8


def list_in(value: object) -> Sequence[object] | None:
    """What is in a list or tuple, also of a class of its own; None for anything else."""
    if not isinstance(value, Inert):
        return items_of(value)
    if value.items:
        return value.items
    named = value.state is None and not value.pairs and isinstance(value.args, tuple)
    return value.args if named and value.args else None  # as a named tuple is made


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
    if value.path in _RECONSTRUCTED and isinstance(value.state, tuple):
        parts, at = value.state, (1, 4)
    else:
        parts, at = value.args, _ARRAYS.get(value.path or "", (0, 0))
    if not isinstance(parts, tuple) or at == (0, 0) or len(parts) <= max(at):
        return None
    shape, held = parts[at[0]], _bytes_in(parts[at[1]])
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
