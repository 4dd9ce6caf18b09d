"""What may be a key of a dict or a member of a set, and how much of it."""

from collections.abc import Collection

from app.domain.pickled.machine import Machine
from app.domain.pickled.outcome import Broken
from app.domain.pickled.values import Global, Inert

_TEXT_ONLY = frozenset({str})
# Hashed with a secret of this process, or by identity, or few there are.
_SAFE = frozenset({str, bytes, bool, type(None), Global, Inert})
_NUMBERS = frozenset({int, float})
_NARROW = 2**24
_LONGEST_TUPLE = 16  # its hash is computed anew each time, unlike that of a string
_COUNT_BYTES = 100  # of an entry that counts the keys of one table

Container = dict[object, object] | set[object]


def check_keys(machine: Machine, keys: Collection[object], into: Container | None = None) -> None:
    """Raise for keys that cannot be hashed, or that could be chosen to make hashing slow.

    *into* is what they are added to; None when that is new.

    Hashing a tuple goes as deep as it nests, and ends the process when that is too deep; so only
    flat tuples may be keys. The hash of a number is known to who writes the file.
    """
    types = {*map(type, keys)}
    if types <= _TEXT_ONLY:
        return
    if strange := types - _SAFE - _NUMBERS - {tuple}:
        raise Broken("bad-value", f"uses a {_nameless(strange)} as a key")
    if wide := sum(map(_is_wide, keys)):
        if into:  # has keys already
            wide += machine.wide_keys.get(id(into), 0)
        if wide > machine.limits.wide_keys:
            raise Broken("limit", f"makes {wide} keys of one table that may share their hash")
        if into is not None:
            machine.make(_COUNT_BYTES)
            machine.wide_keys[id(into)] = wide


def _is_wide(key: object) -> bool:
    if isinstance(key, tuple):
        if len(key) > _LONGEST_TUPLE:
            raise Broken("limit", f"uses a tuple of {len(key)} as a key")
        if not {*map(type, key)} <= _SAFE | _NUMBERS:
            raise Broken("bad-value", "uses a nested tuple as a key")
        return True
    return type(key) is float or (type(key) is int and not -_NARROW < key < _NARROW)


def _nameless(strange: Collection[type]) -> str:
    return " or ".join(sorted(one.__name__ for one in strange))
