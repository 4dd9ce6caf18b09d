"""Opcodes that make lists, tuples, dicts and sets, and put things into them."""

import re

from app.domain.pickled.ints import Ints
from app.domain.pickled.keys import check_keys
from app.domain.pickled.machine import Handler, Machine
from app.domain.pickled.opcodes import CODES
from app.domain.pickled.outcome import Broken
from app.domain.pickled.rows import Remembered, Rows, has_tuples, rows_at
from app.domain.pickled.values import Inert

# What CPython 3.11 needs for an empty one with its place, and for each thing in it.
_LIST_BYTES, _TUPLE_BYTES, _DICT_BYTES, _SET_BYTES, _VIEW_BYTES = 80, 64, 88, 224, 160
_ITEM_BYTES, _PAIR_BYTES, _MEMBER_BYTES = 10, 48, 48
_MARK_BYTES = 96

_PLACE_BYTES = 8

_MEMOIZE, _MARK = CODES["MEMOIZE"], CODES["MARK"]
_ROWS_BEGIN = (CODES["BINFLOAT"], CODES["FRAME"])
_INTS_BEGIN = b"KMJ"
# At least eight ints and nothing else between MARK and TUPLE; EMPTY_LIST, its memo number, and
# such between MARK and APPENDS, as often as the pickler made batches, the last one by APPEND.
_INT_TUPLE = re.compile(rb"(?:K.|M..|J....){8,}+t", re.DOTALL)
_INT_LIST = re.compile(
    rb"\((?:K.|M..|J....){8,}+e(?:\((?:K.|M..|J....)++e)*+(?:(?:K.|M..|J....)a)?+", re.DOTALL
)


def _mark(machine: Machine, at: int) -> int:
    buffer = machine.buffer
    if buffer[at] in _INTS_BEGIN and (found := _INT_TUPLE.match(buffer, at)) is not None:
        end = found.end()
        machine.stack.append(Ints(buffer, at, end - 1, "tuple"))
        machine.room -= _VIEW_BYTES
        return end
    if len(machine.below) >= machine.limits.depth:
        raise Broken("limit", f"nests deeper than {machine.limits.depth} MARKs")
    machine.room -= _MARK_BYTES
    machine.below.append(machine.stack)
    machine.stack = []
    return at


def _pop(machine: Machine, at: int) -> int:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.unmark()
    return at


def _pop_mark(machine: Machine, at: int) -> int:
    machine.unmark()
    return at


def _dup(machine: Machine, at: int) -> int:
    machine.stack.append(machine.stack[-1])
    return at


def _memoized(machine: Machine, value: object, at: int) -> int:
    """Push a new container, and take the MEMOIZE that mostly follows along."""
    machine.stack.append(value)
    if machine.buffer[at] == _MEMOIZE:
        machine.memo.append(value)
        return at + 1
    return at


def _empty_list(machine: Machine, at: int) -> int:
    buffer = machine.buffer
    memoize = buffer[at] == _MEMOIZE
    start = at + memoize
    marked = buffer[start] == _MARK
    if marked and buffer[start + 1] in _ROWS_BEGIN and (rows := rows_at(buffer, start)):
        return _rows(machine, *rows, memoize=memoize)
    found = _INT_LIST.match(buffer, start) if marked else None
    made: list[object] | Ints
    if found is None:
        made, end = [], at + memoize
        machine.room -= _LIST_BYTES
    else:
        made, end = Ints(buffer, at + memoize, found.end(), "list"), found.end()
        machine.room -= _VIEW_BYTES
    machine.stack.append(made)
    if memoize:
        machine.memo.append(made)
    return end


def _rows(machine: Machine, rows: Rows, end: int, *, memoize: bool) -> int:
    """Push *rows*; its tuples take their numbers in the memo, as many as there are."""
    machine.room -= _VIEW_BYTES
    machine.stack.append(rows)
    if memoize:
        machine.memo.append(rows)
    if has_tuples(rows):
        machine.make(_PLACE_BYTES * rows.own)
        remembered = Remembered(rows, len(machine.memo))
        for _ in range(rows.own):
            machine.memo.append(remembered)
    return end


def _empty_dict(machine: Machine, at: int) -> int:
    machine.room -= _DICT_BYTES
    return _memoized(machine, {}, at)


def _empty_set(machine: Machine, at: int) -> int:
    machine.room -= _SET_BYTES
    return _memoized(machine, set(), at)


def _empty_tuple(machine: Machine, at: int) -> int:
    machine.stack.append(())
    return at


def _tuple(machine: Machine, at: int) -> int:
    items = machine.unmark()
    machine.room -= _TUPLE_BYTES + _ITEM_BYTES * len(items)
    return _memoized(machine, tuple(items), at)


def _tuple1(machine: Machine, at: int) -> int:
    stack = machine.stack
    stack[-1] = (stack[-1],)
    machine.room -= _TUPLE_BYTES
    return at


def _tuple2(machine: Machine, at: int) -> int:
    stack = machine.stack
    second = stack.pop()
    stack[-1] = (stack[-1], second)
    machine.room -= _TUPLE_BYTES
    return at


def _tuple3(machine: Machine, at: int) -> int:
    stack = machine.stack
    third, second = stack.pop(), stack.pop()
    stack[-1] = (stack[-1], second, third)
    machine.room -= _TUPLE_BYTES
    return at


def _list(machine: Machine, at: int) -> int:
    items = machine.unmark()
    machine.room -= _LIST_BYTES + _ITEM_BYTES * len(items)
    machine.stack.append(items)
    return at


def _dict(machine: Machine, at: int) -> int:
    items = machine.unmark()
    made: dict[object, object] = {}
    machine.room -= _DICT_BYTES
    _set_pairs(machine, made, items)
    machine.stack.append(made)
    return at


def _frozenset(machine: Machine, at: int) -> int:
    items = machine.unmark()
    machine.make(_SET_BYTES + _MEMBER_BYTES * len(items))
    check_keys(machine, items)
    machine.stack.append(frozenset(items))
    return at


def _append(machine: Machine, at: int) -> int:
    item = machine.stack.pop()
    _extend(machine, machine.stack[-1], [item])
    return at


def _appends(machine: Machine, at: int) -> int:
    items = machine.unmark()
    _extend(machine, machine.stack[-1], items)
    return at


def _extend(machine: Machine, target: object, items: list[object]) -> None:
    machine.room -= _ITEM_BYTES * len(items)
    if isinstance(target, list):
        target += items
    elif isinstance(target, Rows) or (isinstance(target, Ints) and target.kind == "list"):
        target.others = target.others or []
        target.others += items
    elif isinstance(target, Inert):
        target.add(items)
    else:
        raise Broken("bad-opcode", f"appends to a {type(target).__name__}")


def _set_item(machine: Machine, at: int) -> int:
    value, key = machine.stack.pop(), machine.stack.pop()
    _set_pairs(machine, machine.stack[-1], [key, value])
    return at


def _set_items(machine: Machine, at: int) -> int:
    items = machine.unmark()
    _set_pairs(machine, machine.stack[-1], items)
    return at


def _set_pairs(machine: Machine, target: object, items: list[object]) -> None:
    if len(items) % 2:
        raise Broken("bad-opcode", "sets a key without a value")
    machine.make(_PAIR_BYTES * len(items) // 2)
    one_by_one = iter(items)
    if isinstance(target, dict):
        check_keys(machine, items[::2], target)
        target.update(zip(one_by_one, one_by_one, strict=False))  # the two of each pair
    elif isinstance(target, Inert):
        target.set(zip(one_by_one, one_by_one, strict=False))
    else:
        raise Broken("bad-opcode", f"sets keys in a {type(target).__name__}")


def _add_items(machine: Machine, at: int) -> int:
    items = machine.unmark()
    target = machine.stack[-1]
    machine.make(_MEMBER_BYTES * len(items))
    if isinstance(target, set):
        check_keys(machine, items, target)
        target.update(items)
    elif isinstance(target, Inert):
        target.add(items)
    else:
        raise Broken("bad-opcode", f"adds to a {type(target).__name__}")
    return at


HANDLERS: dict[int, Handler] = {
    CODES["MARK"]: _mark,
    CODES["POP"]: _pop,
    CODES["POP_MARK"]: _pop_mark,
    CODES["DUP"]: _dup,
    CODES["EMPTY_LIST"]: _empty_list,
    CODES["EMPTY_DICT"]: _empty_dict,
    CODES["EMPTY_SET"]: _empty_set,
    CODES["EMPTY_TUPLE"]: _empty_tuple,
    CODES["TUPLE"]: _tuple,
    CODES["TUPLE1"]: _tuple1,
    CODES["TUPLE2"]: _tuple2,
    CODES["TUPLE3"]: _tuple3,
    CODES["LIST"]: _list,
    CODES["DICT"]: _dict,
    CODES["FROZENSET"]: _frozenset,
    CODES["APPEND"]: _append,
    CODES["APPENDS"]: _appends,
    CODES["SETITEM"]: _set_item,
    CODES["SETITEMS"]: _set_items,
    CODES["ADDITEMS"]: _add_items,
}
