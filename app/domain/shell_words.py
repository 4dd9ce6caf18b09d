"""The words of a command line as a POSIX shell would split them. Nothing is expanded or run.

``shlex`` knows neither ``$'…'``, which browsers write, nor a line that goes on after ``\\``.
"""

import re

from app.errors import ConsoleError, Malformed, Rejected

LONGEST = 4 * 1024**2
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "e": "\x1b", "E": "\x1b", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_PLAIN = re.compile(r"[^\s'\"\\$`;|&<>()]+")
_SPACE = re.compile(r"(?:\s|\\\r?\n)+")
_JOINED = re.compile(r"\\\r?\n")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_BARE = re.compile(r"\\(.)", re.DOTALL)
_EXPANDED = re.compile(r"(?<!\\)(?:\\\\)*(`|\$(?=[A-Za-z_({@*#?!0-9-]))")
_IN_DOUBLE = re.compile(r'\\(\r?\n|[\\"$`])')


def split(text: str) -> list[str]:
    """The words; raises Malformed for a quote that is not closed, Rejected for shell syntax."""
    if len(text) > LONGEST:
        raise Rejected(f"The command has more than {LONGEST // 1024**2} MiB.")
    words: list[str] = []
    at = 0
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
            continue
        at, word = _word(text, at)
        words.append(word)
    return words


def _word(text: str, at: int) -> tuple[int, str]:
    parts: list[str] = []
    while at < len(text) and not text[at].isspace():
        if joined := _JOINED.match(text, at):  # a line that goes on goes on in its word too
            at = joined.end()
            continue
        at, part = _part(text, at)
        parts.append(part)
    return at, "".join(parts)


def _part(text: str, at: int) -> tuple[int, str]:
    if found := _PLAIN.match(text, at):
        return found.end(), found[0]
    if found := _SINGLE.match(text, at):
        return found.end(), found[1]
    if found := _ANSI.match(text, at):
        return found.end(), _ESCAPE.sub(_unescaped, found[1])
    if found := _DOUBLE.match(text, at):
        if _EXPANDED.search(found[1]):
            raise _expansion(at)
        return found.end(), _IN_DOUBLE.sub(_kept, found[1])
    if found := _BARE.match(text, at):
        return found.end(), found[1]
    if text[at] == "$" and not _EXPANDED.match(text, at):
        return at + 1, "$"
    raise _not_plain(text[at], at)


def _not_plain(sign: str, at: int) -> ConsoleError:
    if sign in "'\"\\":
        return Malformed(f"The quote at character {at + 1} is not closed.")
    if sign in ";|&<>()":
        return Rejected(
            f"There is shell syntax at character {at + 1}: {sign}",
            fix="Paste one curl command alone, with its URL in quotes.",
        )
    return _expansion(at)


def _kept(found: re.Match[str]) -> str:
    return "" if found[1].endswith("\n") else found[1]


def _unescaped(found: re.Match[str]) -> str:
    one, two, four, octal, other = found.groups()
    if other is not None:
        return _ESCAPES.get(other, f"\\{other}")
    number = int(octal, 8) if octal else int(one or two or four, 16)
    byte = (one or octal) and number > 0x7F  # a part of a character, which could be any
    if byte or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise Malformed(f"There is no character {found[0]}.")
    return chr(number)


def _expansion(at: int) -> Rejected:
    return Rejected(
        f"The shell would put something in from elsewhere near character {at + 1} ($… or `…`).",
        fix="Paste the command with the values themselves; nothing is run or looked up here.",
    )
