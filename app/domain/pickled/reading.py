"""Reading a pickle without running it: one handler for each opcode, none of which can call.

Every opcode takes at least its own byte, no handler looks back, and none goes deeper: the time is
that of the bytes.
"""

from itertools import repeat
from struct import error as StructError  # noqa: N812

from app.domain.pickled import containers, memory, objects, scalars, strings
from app.domain.pickled.machine import Handler, Machine
from app.domain.pickled.opcodes import ARGUMENT_BYTES, CODES, named
from app.domain.pickled.outcome import DEFAULT_LIMITS, Broken, Kind, Limits, Pickled, Problem
from app.domain.pickled.plain_calls import blocked
from app.domain.pickled.values import Buffer, Inert
from app.domain.pickled.wrapped import wrapper

_OPCODES_BETWEEN_CHECKS = 4096
_PROTO = CODES["PROTO"]
# They need nothing on the stack, but look at what follows.
_LOOKING_AHEAD = {
    CODES[name] for name in ("MARK", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "TUPLE", "BINFLOAT")
}


class _Stopped(Exception):
    """STOP was reached."""


def _stop(machine: Machine, at: int) -> int:
    machine.check()
    machine.stack[-1]  # there has to be a value
    raise _Stopped


def _unknown(machine: Machine, at: int) -> int:
    raise Broken("bad-opcode", "is no opcode")


_HANDLERS: dict[int, Handler] = {
    CODES["STOP"]: _stop,
    **scalars.HANDLERS,
    **strings.HANDLERS,
    **containers.HANDLERS,
    **memory.HANDLERS,
    **objects.HANDLERS,
}
_TABLE = [_HANDLERS.get(code, _unknown) for code in range(256)]


def read_pickle(buffer: Buffer, limits: Limits = DEFAULT_LIMITS) -> Pickled:
    """What is in the pickle that fills *buffer*. It never raises because of what is in there.

    Views in the answer hold *buffer*; an mmap has to stay open for as long as they are used.
    """
    if not len(buffer):
        return Pickled(None, problem=Problem("empty", 0, "The file is empty."))
    if kind := wrapper(buffer):
        says = f"This is {kind}, not a pickle."
        return Pickled(None, problem=Problem("wrapped", 0, says, kind))
    machine = Machine(buffer, limits)
    at, broken = _run(machine)
    if broken is None:
        problem = _beyond(machine, at)
        return Pickled(machine.stack[-1], blocked(machine), problem)
    rest = machine.remains()
    return Pickled(None, blocked(machine), _problem(machine, at, broken, rest), rest)


def _run(machine: Machine) -> tuple[int, Broken | None]:
    """Where it ended, and why; None when that was STOP."""
    buffer, table, at = machine.buffer, _TABLE, 0
    left = machine.limits.opcodes
    try:
        while left > 0:
            for _ in repeat(None, _OPCODES_BETWEEN_CHECKS):
                at = table[buffer[at]](machine, at + 1)
            left -= _OPCODES_BETWEEN_CHECKS
            machine.check()
    except _Stopped:
        return at, None
    except Broken as broken:
        return at, broken
    except (IndexError, StructError):
        return at, _short(machine, at)
    return at, Broken("limit", f"comes after {machine.limits.opcodes} others")


def _short(machine: Machine, at: int) -> Broken:
    """Something was not there: more of the file, or more on the stack."""
    if at >= machine.size:
        return Broken("truncated", "The file ends without STOP.")
    needs = ARGUMENT_BYTES.get(machine.buffer[at], 0)
    if at + 1 + needs > machine.size or machine.buffer[at] in _LOOKING_AHEAD:
        return Broken("truncated", "is cut off")
    return Broken("bad-opcode", "needs more values than there are")


def _beyond(machine: Machine, at: int) -> Problem | None:
    """What is wrong with a pickle that was read to its end."""
    if at + 1 < machine.size:
        more = machine.size - at - 1
        follow = "byte follows" if more == 1 else "bytes follow"
        says = f"{more} {follow} the end of the pickle at byte {at}."
        return Problem("data-after-stop", at + 1, says)
    if machine.short_frame is not None:
        position, length = machine.short_frame
        left = machine.size - position - 9
        says = f"FRAME at byte {position} claims {length} bytes, {left} are left."
        return Problem("truncated", position, says)
    return None


def _problem(machine: Machine, at: int, broken: Broken, rest: tuple[object, ...]) -> Problem:
    if at >= machine.size:
        says = broken.says
    else:
        says = f"{named(machine.buffer[at])} at byte {at} {broken.says}."
    if _is_something_else(machine, broken.kind, rest):
        return Problem("not-a-pickle", at, f"This is no pickle: {says}")
    return Problem(broken.kind, at, says)


def _is_something_else(machine: Machine, kind: Kind, rest: tuple[object, ...]) -> bool:
    """Whether it never looked like a pickle: no header, and nothing made of it."""
    if machine.buffer[0] == _PROTO or kind in ("limit", "outside") or machine.names:
        return False
    return not any(isinstance(value, list | tuple | dict | Inert) for value in rest)
