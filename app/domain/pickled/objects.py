"""Opcodes that name classes and would call them, and those that ask for what is elsewhere."""

from app.domain.pickled.machine import Handler, Machine
from app.domain.pickled.opcodes import CODES
from app.domain.pickled.outcome import Broken
from app.domain.pickled.plain_calls import called, kept
from app.domain.pickled.scalars import line
from app.domain.pickled.values import Global, Inert


def _named(machine: Machine, module: object, name: object) -> Global:
    if not isinstance(module, str) or not isinstance(name, str):
        raise Broken("bad-value", "names a class by something that is no short string")
    if len(module) + len(name) > machine.limits.name_bytes:
        raise Broken("limit", f"names a class in {len(module) + len(name)} characters")
    known = machine.names.get((module, name))
    if known is None:
        if len(machine.names) >= machine.limits.names:
            raise Broken("limit", f"names more than {machine.limits.names} classes")
        known = machine.names[module, name] = Global(module, name)
    return known


def _two_lines(machine: Machine, at: int) -> tuple[Global, int]:
    module, at = line(machine, at, machine.limits.name_bytes)
    name, at = line(machine, at, machine.limits.name_bytes)
    try:
        return _named(machine, module.decode(), name.decode()), at
    except UnicodeDecodeError:
        raise Broken("bad-value", "names a class in something that is not UTF-8") from None


def _global(machine: Machine, at: int) -> int:
    named, at = _two_lines(machine, at)
    machine.stack.append(named)
    return at


def _stack_global(machine: Machine, at: int) -> int:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(_named(machine, module, name))
    return at


def _reduce(machine: Machine, at: int) -> int:
    args = machine.stack.pop()
    machine.stack[-1] = called(machine, machine.stack[-1], args)
    return at


def _newobj(machine: Machine, at: int) -> int:
    args = machine.stack.pop()
    machine.stack[-1] = kept(machine, machine.stack[-1], args)
    return at


def _newobj_ex(machine: Machine, at: int) -> int:
    keywords, args = machine.stack.pop(), machine.stack.pop()
    machine.stack[-1] = kept(machine, machine.stack[-1], args, keywords)
    return at


def _inst(machine: Machine, at: int) -> int:
    named, at = _two_lines(machine, at)
    args = tuple(machine.unmark())
    machine.stack.append(kept(machine, named, args))
    return at


def _obj(machine: Machine, at: int) -> int:
    items = machine.unmark()
    machine.stack.append(kept(machine, items[0], tuple(items[1:])))
    return at


def _build(machine: Machine, at: int) -> int:
    state = machine.stack.pop()
    target = machine.stack[-1]
    if isinstance(target, Inert):
        target.state = state
    elif isinstance(target, Global) or state:
        raise Broken("bad-opcode", f"sets the state of a {type(target).__name__}")
    return at


def _elsewhere(machine: Machine, at: int) -> int:
    raise Broken("outside", "asks for something that is not in the file")


def _readonly(machine: Machine, at: int) -> int:
    if not isinstance(machine.stack[-1], bytes):
        raise Broken("bad-opcode", "protects something that is no buffer")
    return at


HANDLERS: dict[int, Handler] = {
    CODES["GLOBAL"]: _global,
    CODES["STACK_GLOBAL"]: _stack_global,
    CODES["REDUCE"]: _reduce,
    CODES["NEWOBJ"]: _newobj,
    CODES["NEWOBJ_EX"]: _newobj_ex,
    CODES["INST"]: _inst,
    CODES["OBJ"]: _obj,
    CODES["BUILD"]: _build,
    CODES["READONLY_BUFFER"]: _readonly,
    **{
        CODES[name]: _elsewhere
        for name in ("PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER")
    },
}
