"""Opcodes that push strings and bytes: short ones as they are, long ones as views."""

import codecs
import re
from struct import Struct

from app.domain.pickled.machine import Handler, Machine
from app.domain.pickled.opcodes import CODES
from app.domain.pickled.outcome import Broken
from app.domain.pickled.scalars import line
from app.domain.pickled.values import Octets, Text

LONGEST_STR_BYTES = 512
LONGEST_BYTES = 4096
_HEAD_BYTES = 64  # of a Python string, bytes object or view, and its place
_WIDEST = 4  # bytes of a character in memory, for one in the file
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|([0-7]{1,3})|(.?))", re.DOTALL)
_ESCAPED = {
    bytes([letter]): bytes([meant])
    for letter, meant in zip(b"\\'\"abfnrtv", b"\\'\"\a\b\f\n\r\t\v", strict=True)
}
_ESCAPED[b"\n"] = b""
# Looked up now: a reader that is shut in can import nothing more.
_RAW_TEXT = codecs.getdecoder("raw_unicode_escape")
_MEMOIZE = CODES["MEMOIZE"]
_UINT4, _INT4, _UINT8 = Struct("<I"), Struct("<i"), Struct("<Q")


def _short_text(machine: Machine, at: int) -> int:
    buffer = machine.buffer
    end = at + 1 + buffer[at]
    if end >= machine.size:  # something has to follow
        raise _cut(machine, at + 1, end)
    octets = buffer[at + 1 : end]
    try:
        text = octets.decode()
    except UnicodeDecodeError:
        text = _with_surrogates(octets)
    machine.stack.append(text)
    machine.room -= _HEAD_BYTES + len(octets)
    if buffer[end] == _MEMOIZE:
        machine.memo.append(text)
        return end + 1
    return end


def _text4(machine: Machine, at: int) -> int:
    return _text(machine, at + 4, *_UINT4.unpack_from(machine.buffer, at))


def _text8(machine: Machine, at: int) -> int:
    return _text(machine, at + 8, *_UINT8.unpack_from(machine.buffer, at))


def _text(machine: Machine, start: int, length: int) -> int:
    end = start + length
    if end > machine.size:
        raise _cut(machine, start, end)
    if length > LONGEST_STR_BYTES:
        machine.room -= _HEAD_BYTES
        machine.stack.append(Text(machine.buffer, start, end))
        return end
    machine.room -= _HEAD_BYTES + length
    machine.stack.append(_with_surrogates(machine.buffer[start:end]))
    return end


def _with_surrogates(octets: bytes) -> str:
    try:
        return octets.decode("utf-8", "surrogatepass")  # as pickle writes and reads them
    except UnicodeDecodeError as error:
        raise Broken("bad-value", f"is not UTF-8 from byte {error.start} of its text on") from None


def _text_line(machine: Machine, at: int) -> int:
    octets, end = line(machine, at, machine.size)
    machine.make(_HEAD_BYTES + len(octets) * _WIDEST)
    try:
        machine.stack.append(_RAW_TEXT(octets)[0])
    except UnicodeDecodeError as error:
        raise Broken("bad-value", f"has a broken escape at byte {error.start}") from None
    return end


def _short_bytes(machine: Machine, at: int) -> int:
    return _bytes(machine, at + 1, machine.buffer[at])


def _bytes4(machine: Machine, at: int) -> int:
    return _bytes(machine, at + 4, *_UINT4.unpack_from(machine.buffer, at))


def _bytes8(machine: Machine, at: int) -> int:
    return _bytes(machine, at + 8, *_UINT8.unpack_from(machine.buffer, at))


def _bytes(machine: Machine, start: int, length: int) -> int:
    end = start + length
    if end > machine.size:
        raise _cut(machine, start, end)
    short = length <= LONGEST_BYTES
    machine.room -= _HEAD_BYTES + (length if short else 0)
    buffer = machine.buffer
    machine.stack.append(buffer[start:end] if short else Octets(buffer, start, end))
    return end


def _short_old(machine: Machine, at: int) -> int:
    return _old(machine, at + 1, machine.buffer[at])


def _old4(machine: Machine, at: int) -> int:
    return _old(machine, at + 4, *_INT4.unpack_from(machine.buffer, at))


def _old(machine: Machine, start: int, length: int) -> int:
    """A string of Python 2, which were bytes."""
    end = start + length
    if length < 0:
        raise Broken("bad-value", f"claims {length} bytes")
    if end > machine.size:
        raise _cut(machine, start, end)
    machine.make(_HEAD_BYTES + length * _WIDEST)
    machine.stack.append(_of_python2(machine.buffer[start:end]))
    return end


def _old_line(machine: Machine, at: int) -> int:
    quoted, end = line(machine, at, machine.size)
    quoted = quoted.strip()
    if len(quoted) < 2 or quoted[:1] != quoted[-1:] or quoted[:1] not in (b"'", b'"'):
        raise Broken("bad-value", "is not in quotes")
    machine.make(_HEAD_BYTES + len(quoted) * _WIDEST)
    machine.stack.append(_of_python2(_ESCAPE.sub(_unescaped, quoted[1:-1])))
    return end


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """What one escape of Python 2's repr stands for; an unknown one stands for itself."""
    hexadecimal, octal, letter = escape.groups()
    if hexadecimal or octal:
        return bytes([int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 0xFF])
    if letter in (b"", b"x"):
        raise Broken("bad-value", "has a broken escape")
    return _ESCAPED.get(letter, escape[0])


def _of_python2(octets: bytes) -> str | bytes:
    """Text where it can be text; plain ``pickle.load`` takes ASCII only."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets


def _cut(machine: Machine, start: int, end: int) -> Broken:
    left = max(machine.size - start, 0)
    if left == end - start:
        return Broken("truncated", "is the last, and no STOP follows")
    return Broken("truncated", f"claims {end - start} bytes, {left} are left")


HANDLERS: dict[int, Handler] = {
    CODES["SHORT_BINUNICODE"]: _short_text,
    CODES["BINUNICODE"]: _text4,
    CODES["BINUNICODE8"]: _text8,
    CODES["UNICODE"]: _text_line,
    CODES["SHORT_BINBYTES"]: _short_bytes,
    CODES["BINBYTES"]: _bytes4,
    CODES["BINBYTES8"]: _bytes8,
    CODES["BYTEARRAY8"]: _bytes8,
    CODES["SHORT_BINSTRING"]: _short_old,
    CODES["BINSTRING"]: _old4,
    CODES["STRING"]: _old_line,
}
