"""Opcodes of the memo and of the frame around everything."""

from struct import Struct

from app.domain.pickled.machine import Handler, Machine
from app.domain.pickled.opcodes import CODES
from app.domain.pickled.outcome import Broken
from app.domain.pickled.scalars import line

NEWEST_PROTOCOL = 5
_UINT4, _UINT8 = Struct("<I"), Struct("<Q")
_MOST_DIGITS = 20


def _memoize(machine: Machine, at: int) -> int:
    machine.memo.append(machine.stack[-1])
    return at


def _put1(machine: Machine, at: int) -> int:
    machine.remember(machine.buffer[at], machine.stack[-1])
    return at + 1


def _put4(machine: Machine, at: int) -> int:
    (index,) = _UINT4.unpack_from(machine.buffer, at)
    machine.remember(index, machine.stack[-1])
    return at + 4


def _put_line(machine: Machine, at: int) -> int:
    index, at = _index(machine, at)
    machine.remember(index, machine.stack[-1])
    return at


def _get_line(machine: Machine, at: int) -> int:
    index, at = _index(machine, at)
    machine.stack.append(machine.recall(index))
    return at


def _index(machine: Machine, at: int) -> tuple[int, int]:
    octets, at = line(machine, at, _MOST_DIGITS)
    if not octets.isdigit():
        raise Broken("bad-value", f"is no memo number: {octets!r}")
    return int(octets), at


def _protocol(machine: Machine, at: int) -> int:
    protocol = machine.buffer[at]
    if protocol > NEWEST_PROTOCOL:
        raise Broken("bad-value", f"asks for protocol {protocol}; the newest is {NEWEST_PROTOCOL}")
    return at + 1


def _frame(machine: Machine, at: int) -> int:
    """Says how much to read at once, which we need not know; a claim too large is reported."""
    (length,) = _UINT8.unpack_from(machine.buffer, at)
    if at + 8 + length > machine.size and machine.short_frame is None:
        machine.short_frame = (at - 1, length)
    return at + 8


HANDLERS: dict[int, Handler] = {
    CODES["MEMOIZE"]: _memoize,
    CODES["PUT"]: _put_line,
    CODES["BINPUT"]: _put1,
    CODES["LONG_BINPUT"]: _put4,
    CODES["GET"]: _get_line,
    CODES["PROTO"]: _protocol,
    CODES["FRAME"]: _frame,
}
