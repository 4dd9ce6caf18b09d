"""Opcodes that push None, bools and numbers, and runs of opcodes that do nothing but push."""

import re
from functools import cache
from struct import Struct

from app.domain.pickled.machine import Handler, Machine
from app.domain.pickled.opcodes import CODES
from app.domain.pickled.outcome import Broken

_NUMBER_BYTES = 36  # of a Python int or float on the heap

# NONE, NEWTRUE, NEWFALSE, BININT1, BINGET, LONG_BINGET: the same bytes push the same values for
# as long as no memo number changes its meaning.
_PUSHES = re.compile(rb"(?:[N\x88\x89]|[Kh].|j....){1,512}+", re.DOTALL)
_PUSH = re.compile(rb"([N\x88\x89])|K(.)|h(.)|j(....)", re.DOTALL)
_CONSTANTS: dict[bytes, object] = {b"N": None, b"\x88": True, b"\x89": False}
_MOST_FRAGMENTS = 1024

_MOST_FLOATS = 512
_FLOATS = re.compile(rb"(?:G.{8}){2,%d}+" % _MOST_FLOATS, re.DOTALL)
_BINFLOAT = CODES["BINFLOAT"]
_FLOAT = Struct(">d")
_INT = Struct("<i")
_LENGTH = Struct("<i")


def _pushes(machine: Machine, at: int) -> int:
    found = _PUSHES.match(machine.buffer, at - 1)
    if found is None:  # one that is cut off
        raise IndexError
    run = found[0]
    values = machine.fragments.get(run)
    machine.stack += values if values is not None else _learn(machine, run)
    return found.end()


def _learn(machine: Machine, run: bytes) -> list[object]:
    values = [
        _CONSTANTS[constant]
        if constant
        else small[0]
        if small
        else machine.recall(int.from_bytes(short or long, "little"))
        for constant, small, short, long in _PUSH.findall(run)
    ]
    if len(machine.fragments) >= _MOST_FRAGMENTS:
        machine.fragments.clear()
    machine.fragments[run] = values
    return values


def _int2(machine: Machine, at: int) -> int:
    buffer = machine.buffer
    machine.stack.append(buffer[at] | buffer[at + 1] << 8)
    machine.room -= _NUMBER_BYTES
    return at + 2


def _int4(machine: Machine, at: int) -> int:
    machine.stack += _INT.unpack_from(machine.buffer, at)
    machine.room -= _NUMBER_BYTES
    return at + 4


def _float(machine: Machine, at: int) -> int:
    buffer = machine.buffer
    if buffer[at + 8] == _BINFLOAT and (found := _FLOATS.match(buffer, at - 1)) is not None:
        run = found[0]  # such as an embedding
        count = len(run) // 9
        machine.stack += _floats(count).unpack(run)
        machine.room -= _NUMBER_BYTES * count
        return found.end()
    machine.stack += _FLOAT.unpack_from(buffer, at)
    machine.room -= _NUMBER_BYTES
    return at + 8


@cache
def _floats(count: int) -> Struct:
    return Struct(">" + "xd" * count)


def _long1(machine: Machine, at: int) -> int:
    return _long(machine, at + 1, machine.buffer[at])


def _long4(machine: Machine, at: int) -> int:
    return _long(machine, at + 4, *_LENGTH.unpack_from(machine.buffer, at))


def _long(machine: Machine, start: int, length: int) -> int:
    if length < 0:
        raise Broken("bad-value", f"claims {length} bytes")
    end = start + length
    if end > machine.size:
        raise Broken("truncated", f"claims {length} bytes, {machine.size - start} are left")
    if length > machine.limits.number_bytes:
        raise Broken("limit", f"is a number of {length} bytes")
    machine.room -= _NUMBER_BYTES + length
    machine.stack.append(int.from_bytes(machine.buffer[start:end], "little", signed=True))
    return end


def line(machine: Machine, at: int, most_bytes: int) -> tuple[bytes, int]:
    """The line at *at* without its end, and the position behind it."""
    end = machine.buffer.find(b"\n", at, at + most_bytes + 1)
    if end >= 0:
        return machine.buffer[at:end], end + 1
    if at + most_bytes < machine.size:
        raise Broken("limit", f"has a line of more than {most_bytes} bytes")
    raise Broken("truncated", "has a line without an end")


def _number(octets: bytes, read: type[int] | type[float]) -> object:
    try:
        return int(octets, 0) if read is int else float(octets)
    except ValueError:
        raise Broken("bad-value", f"is no number: {octets[:20]!r}") from None


def _text_int(machine: Machine, at: int) -> int:
    octets, end = line(machine, at, machine.limits.number_bytes)
    bools = {b"00": False, b"01": True}  # as protocol 0 writes them
    machine.stack.append(bools[octets] if octets in bools else _number(octets, int))
    machine.room -= _NUMBER_BYTES
    return end


def _text_long(machine: Machine, at: int) -> int:
    octets, end = line(machine, at, machine.limits.number_bytes)
    machine.stack.append(_number(octets.removesuffix(b"L"), int))
    machine.room -= _NUMBER_BYTES
    return end


def _text_float(machine: Machine, at: int) -> int:
    octets, end = line(machine, at, machine.limits.number_bytes)
    machine.stack.append(_number(octets, float))
    machine.room -= _NUMBER_BYTES
    return end


HANDLERS: dict[int, Handler] = {
    **{CODES[name]: _pushes for name in ("NONE", "NEWTRUE", "NEWFALSE", "BININT1")},
    **{CODES[name]: _pushes for name in ("BINGET", "LONG_BINGET")},
    CODES["BININT2"]: _int2,
    CODES["BININT"]: _int4,
    CODES["BINFLOAT"]: _float,
    CODES["LONG1"]: _long1,
    CODES["LONG4"]: _long4,
    CODES["INT"]: _text_int,
    CODES["LONG"]: _text_long,
    CODES["FLOAT"]: _text_float,
}
