"""Reading mangled C++ names, character by character, within bounds.

``NotKnown`` is raised for everything that is not certain: a name is better shown as it is than
wrongly.
"""

from dataclasses import dataclass

MOST_CHARACTERS = 16_384
MOST_WRITTEN = 1_048_576  # substitutions of substitutions grow without end
MOST_DEPTH = 96

BUILTINS = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
}
LITERALS = {
    "int": "",
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "ul",
    "long long": "ll",
    "unsigned long long": "ull",
}
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class NotKnown(Exception):
    """The name has a form that is not read here, or is none."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type around the place where a declared name would stand: ``void (*`` and ``)(int)``."""

    left: str
    right: str = ""
    reference: str = ""  # "&" or "&&"
    const: bool = False
    pack: "tuple[Type, ...] | None" = None
    wraps: bool = False  # a pointer to it needs parentheses: functions and arrays

    def __str__(self) -> str:
        if self.pack is not None:
            return ", ".join(map(str, self.pack))
        return f"{self.left} {self.right}" if self.wraps else self.left + self.right

    def pointed(self, mark: str) -> "Type":
        """A pointer or reference to this type; two references are one."""
        if self.pack is not None:
            raise NotKnown
        if self.reference:
            if mark == "*":
                raise NotKnown
            if mark == "&" and self.reference == "&&":
                return Type(self.left.removesuffix("&"), self.right, "&")
            return self
        reference = mark if mark != "*" else ""
        if self.wraps:
            space = " " if self.right.startswith("[") else ""  # as c++filt has it
            return Type(f"{self.left} ({mark}", f"){space}{self.right}", reference)
        return Type(self.left + mark, self.right, reference)

    def qualified(self, words: str) -> "Type":
        if self.reference or self.const or self.pack is not None or self.wraps:
            raise NotKnown
        return Type(self.left + words, self.right, const=True)


class Reader:
    """A position in a name. Everything that is written is counted against one budget."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._written = 0
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise NotKnown

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    @property
    def ended(self) -> bool:
        return self._at == len(self._text)

    def peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def take(self, wanted: str) -> bool:
        """Whether *wanted* came next; then it is behind us."""
        if not self._text.startswith(wanted, self._at):
            return False
        self._at += len(wanted)
        return True

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise NotKnown

    def one(self) -> str:
        if self.ended:
            raise NotKnown
        self._at += 1
        return self._text[self._at - 1]

    def digits(self) -> str:
        start = self._at
        while self.peek().isascii() and self.peek().isdigit():
            self._at += 1
        return self._text[start : self._at]

    def source_name(self) -> str:
        number = self.digits()
        if not number or len(number) > 6 or number.startswith("0"):
            raise NotKnown
        name = self.peek(int(number))
        if len(name) < int(number) or not name.isascii():
            raise NotKnown
        self._at += len(name)
        if name.startswith("_GLOBAL_") and name[8:10] in ("_N", ".N", "$N"):
            return "(anonymous namespace)"
        return name

    def sequence(self) -> int:
        """``_`` is 0, ``0_`` is 1, ``A_`` is 11: base 36."""
        start = self._at
        while self.peek() and self.peek() in _DIGITS:
            self._at += 1
        word = self._text[start : self._at]
        self.need("_")
        return 0 if not word else self._number(word, 36) + 1

    def ordinal(self) -> int:
        """``_`` is 1, ``0_`` is 2: the number of a closure."""
        word = self.digits()
        self.need("_")
        return 1 if not word else self._number(word, 10) + 2

    def written(self, text: str) -> str:
        self._written += len(text)
        if self._written > MOST_WRITTEN:
            raise NotKnown
        return text

    @staticmethod
    def _number(word: str, base: int) -> int:
        if len(word) > 6:
            raise NotKnown
        return int(word, base)
