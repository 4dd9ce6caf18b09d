"""Calls whose result is plain data and known without making them.

Older protocols have no opcode for bytes, sets and the like, and write the call that makes them.
"""

from collections.abc import Callable

from app.domain.pickled.keys import check_keys
from app.domain.pickled.machine import Machine
from app.domain.pickled.numpy_scalars import numpy_scalar
from app.domain.pickled.outcome import Broken
from app.domain.pickled.values import Global, Inert, Octets, Text

_ITEM_BYTES = 10
_MEMBER_BYTES = 48
_EMPTY_BYTES = 224


def called(machine: Machine, made_from: object, args: object) -> object:
    """What REDUCE gives: plain data for the few calls that are known, else a stand-in."""
    if isinstance(made_from, Global) and isinstance(args, tuple):
        known = _KNOWN.get((made_from.module.replace("__builtin__", "builtins"), made_from.name))
        made = known(machine, args) if known else None
        if made is not None:
            machine.room -= _EMPTY_BYTES
            return made
    return kept(machine, made_from, args)


def kept(machine: Machine, made_from: object, args: object, keywords: object = None) -> Inert:
    """A stand-in, with what it would have been made from on record."""
    if isinstance(made_from, Global):
        machine.kept.add(made_from)
    machine.room -= _EMPTY_BYTES
    return Inert(made_from, args, keywords)


def _encoded(machine: Machine, args: tuple[object, ...]) -> object:
    """Bytes, in protocols 0 to 2."""
    if len(args) != 2 or args[1] not in ("latin1", "latin-1"):
        return None
    return _latin1(machine, args[0])


def _bytearray(machine: Machine, args: tuple[object, ...]) -> object:
    if len(args) == 1 and isinstance(args[0], bytes | Octets):
        return args[0]
    return _encoded(machine, args) if args else b""


def _bytes(machine: Machine, args: tuple[object, ...]) -> object:
    return None if args else b""


def _latin1(machine: Machine, text: object) -> object:
    if not isinstance(text, str | Text):
        return None
    machine.make(text.size_bytes * 4 if isinstance(text, Text) else len(text))
    try:
        return str(text).encode("latin-1")
    except UnicodeEncodeError:
        raise Broken("bad-value", "has text for bytes that is not Latin-1") from None


def _members(machine: Machine, args: tuple[object, ...]) -> list[object] | None:
    if len(args) != 1 or not isinstance(args[0], list):
        return None
    machine.make(_MEMBER_BYTES * len(args[0]))
    check_keys(machine, args[0])
    return args[0]


def _set(machine: Machine, args: tuple[object, ...]) -> object:
    members = _members(machine, args)
    return None if members is None else set(members)


def _frozenset(machine: Machine, args: tuple[object, ...]) -> object:
    members = _members(machine, args)
    return None if members is None else frozenset(members)


def _ordered(machine: Machine, args: tuple[object, ...]) -> object:
    return None if args else {}


def _default(machine: Machine, args: tuple[object, ...]) -> object:
    """A defaultdict, made with what would fill in for a key that is missing."""
    return {} if not args or (len(args) == 1 and isinstance(args[0], Global | None)) else None


def _items(machine: Machine, args: tuple[object, ...]) -> list[object] | None:
    if not args:
        return []
    if len(args) != 1 or not isinstance(args[0], list | tuple):
        return None
    machine.make(_ITEM_BYTES * len(args[0]))
    return list(args[0])


def _tuple(machine: Machine, args: tuple[object, ...]) -> object:
    items = _items(machine, args)
    return None if items is None else tuple(items)


def _deque(machine: Machine, args: tuple[object, ...]) -> object:
    """Its second argument is how many it may hold at most."""
    return _items(machine, args[:1]) if len(args) <= 2 else None


def _number(machine: Machine, args: tuple[object, ...]) -> object:
    return numpy_scalar(args)


_KNOWN: dict[tuple[str, str], Callable[[Machine, tuple[object, ...]], object]] = {
    ("_codecs", "encode"): _encoded,
    ("builtins", "bytearray"): _bytearray,
    ("builtins", "bytes"): _bytes,
    ("builtins", "set"): _set,
    ("builtins", "frozenset"): _frozenset,
    ("builtins", "list"): _items,
    ("builtins", "tuple"): _tuple,
    ("collections", "OrderedDict"): _ordered,
    ("collections", "defaultdict"): _default,
    ("collections", "deque"): _deque,
    ("numpy.core.multiarray", "scalar"): _number,
    ("numpy._core.multiarray", "scalar"): _number,
}


def blocked(machine: Machine) -> tuple[str, ...]:
    """Names in order of appearance, without those that only ever gave plain data."""
    return tuple(
        one.path
        for (module, name), one in machine.names.items()
        if one in machine.kept or (module.replace("__builtin__", "builtins"), name) not in _KNOWN
    )
