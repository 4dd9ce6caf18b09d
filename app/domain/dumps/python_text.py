"""Values as Python prints them, read without evaluating: how SGLang logs its requests.

``GenerateReqInput(rid='r', stream=False, text='a' ... 'b')``: what the server cut short with
`` ... `` is a ``Cut``. What is not understood is a ``Cut`` too: it is there, and unknown.
"""

import re
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>[bru]{0,2}(?:'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"))"
    r"|(?P<number>[-+]?\d[\d_]{0,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,4})?)"
    r"|(?P<cut>\.\.\.)"
    r"|(?P<name>[A-Za-z_][\w.]{0,200})"
    r"|(?P<mark>[\[\](){},:=])"
    r"|(?P<other>\S))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_WORDS = {"None": None, "True": True, "False": False}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 32
_LAST_CHARACTER = 0x10FFFF


class Cut:
    """Something that stands in a text but cannot be told from it."""

    __slots__ = ()


CUT = Cut()


class Unreadable(ValueError):
    """A text that is no value as Python prints it."""


def read_call(text: str, start: int) -> tuple[str, dict[str, Any], int]:
    """Name, keyword arguments and end of the call that *text* has at *start*.

    Raises Unreadable.
    """
    reader = _Reader(text, start)
    name = reader.take("name")
    fields = reader.arguments()
    return name, fields, reader.at


def read_value(text: str, start: int) -> tuple[Any, int]:
    """The value that *text* has at *start*, and where it ends; raises Unreadable."""
    reader = _Reader(text, start)
    return reader.value(0), reader.at


class _Reader:
    """Reads tokens of *text* from *at* on."""

    __slots__ = ("_text", "at")

    def __init__(self, text: str, at: int) -> None:
        self._text, self.at = text, at

    def value(self, depth: int) -> Any:  # noqa: ANN401  (whatever was printed)
        """One value; two with `` ... `` between them are one that was cut short."""
        if depth > _DEEPEST:
            raise Unreadable("nested too deeply")
        value = self._one(depth)
        while self._peek("cut"):
            self.take("cut")
            self._one(depth)
            value = CUT
        return value

    def arguments(self, depth: int = 0) -> dict[str, Any]:
        """The keyword arguments in parentheses."""
        found: dict[str, Any] = {}
        self._mark("(")
        while not self._ended(")"):
            name = self.take("name")
            self._mark("=")
            found[name] = self.value(depth + 1)
        return found

    def take(self, kind: str) -> str:
        """The next token, which is of *kind*."""
        token = self._next()
        if token.lastgroup != kind:
            raise Unreadable(f"no {kind} at character {self.at}")
        self.at = token.end()
        return token[kind]

    def _one(self, depth: int) -> Any:  # noqa: ANN401
        token = self._next()
        kind = token.lastgroup
        if kind == "mark":
            return self._container(depth, token["mark"])
        self.at = token.end()
        if kind == "text":
            return _unquoted(token["text"])
        if kind == "number":
            return _number(token["number"])
        if kind == "name":
            return self._named(token["name"], depth)
        raise Unreadable(f"no value at character {token.start()}")

    def _named(self, name: str, depth: int) -> Any:  # noqa: ANN401
        if name in _WORDS:
            return _WORDS[name]
        if self._peek("mark", "("):
            return self.arguments(depth)
        return CUT

    def _container(self, depth: int, opening: str) -> Any:  # noqa: ANN401
        if opening not in _CLOSING:
            raise Unreadable(f"no value at character {self.at}")
        self._mark(opening)
        closing = _CLOSING[opening]
        found: list[Any] = []
        table: dict[Any, Any] = {}
        while not self._ended(closing):
            value = self.value(depth + 1)
            if opening == "{" and self._peek("mark", ":"):
                self._mark(":")
                table[value if isinstance(value, str) else str(value)[:40]] = self.value(depth + 1)
            else:
                found.append(value)
        return table if opening == "{" else found

    def _ended(self, closing: str) -> bool:
        """Whether a container ends here; passes over its end, or over a comma."""
        if self._peek("mark", ","):
            self._mark(",")
        if self._peek("mark", closing):
            self._mark(closing)
            return True
        return False

    def _mark(self, mark: str) -> None:
        if self.take("mark") != mark:
            raise Unreadable(f"no {mark} before character {self.at}")

    def _peek(self, kind: str, text: str | None = None) -> bool:
        token = _TOKEN.match(self._text, self.at)
        return token is not None and token.lastgroup == kind and text in (None, token[kind])

    def _next(self) -> re.Match[str]:
        token = _TOKEN.match(self._text, self.at)
        if token is None:
            raise Unreadable("it ends too soon")
        return token


def _number(text: str) -> int | float:
    plain = text.replace("_", "")
    return int(plain) if plain.lstrip("+-").isdigit() else float(plain)


def _unquoted(text: str) -> str:
    quote = text[-1]
    inside = text[text.index(quote) + 1 : -1]
    return _ESCAPE.sub(_character, inside) if "\\" in inside else inside


def _character(found: re.Match[str]) -> str:
    code = next((one for one in found.groups()[:3] if one), None)
    if code is None:
        return _ESCAPED.get(found[4], found[0])
    number = int(code, 16)
    return chr(number) if number <= _LAST_CHARACTER else "\ufffd"
