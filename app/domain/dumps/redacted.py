"""Values of a request as JSON, at a tier: T2 as they are, T1 without secrets in texts.

Objects that only Python's pickle knows are named, never rebuilt. What nests too deeply, or holds
itself, ends in a word for it.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from app.domain.dumps.scalars import KINDS, is_figure, kind_of
from app.domain.pickled.values import Global, Inert, Octets, attributes, ints_of, items_of, text_of
from app.domain.redaction import Fingerprint, redact_json

Tier = Literal["T0", "T1", "T2"]

_TOO_MUCH = ", too deep or too much to be shown"
_IN_PLACE = re.compile(
    rf"\((?:\d{{1,12}} bytes|an object of .{{1,130}}|{'|'.join(sorted(KINDS))})(?:{_TOO_MUCH})?\)"
)
_NUMBERS = frozenset((int, float))
_DEEPEST = 24
_MOST_VALUES = 5_000_000
_WIDEST_INTEGER = 1 << 63


class Plain:
    """Turns values into JSON; one for each request, as it counts what it makes."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def of(self, value: object, depth: int = 0) -> Any:  # noqa: ANN401  (JSON)
        """*value* as JSON can say it."""
        self._left -= 1
        if value is None or value is True or value is False or is_figure(value):
            return value
        if (text := text_of(value)) is not None:
            return _sayable(text)
        if depth >= _DEEPEST or self._left < 0:
            return f"({kind_of(value)}{_TOO_MUCH})"
        if isinstance(value, Mapping):
            return {_key(name): self.of(one, depth + 1) for name, one in value.items()}
        if (ids := ints_of(value)) is not None and (told := self._numbers(ids)) is not None:
            return told
        if (items := items_of(value)) is not None:
            return [self.of(one, depth + 1) for one in items]
        if isinstance(value, Inert | Global):
            return self._object(value, depth)
        return self._odd(value, depth)

    def _numbers(self, ids: Sequence[int]) -> list[int] | None:
        """Token ids all at once, as a dump is mostly these; None where JSON cannot say one."""
        told = list(islice(ids, max(0, self._left)))
        self._left -= len(told)
        widest = max(map(abs, told), default=0)
        return told if widest < _WIDEST_INTEGER else None

    def _object(self, value: Inert | Global, depth: int) -> Any:  # noqa: ANN401
        """An object that was pickled, by its class and its fields; a media object by its URL."""
        if isinstance(value, Global):
            return {"class": _sayable(value.path)}
        fields = attributes(value)
        shown = {_key(name): self.of(one, depth + 1) for name, one in fields.items()}
        if not shown:
            shown = {"arguments": self.of(value.args, depth + 1)}
        return {"class": _sayable(value.path or "unnamed"), **shown}

    def _odd(self, value: object, depth: int) -> Any:  # noqa: ANN401
        if isinstance(value, bytes | Octets):
            size = len(value) if isinstance(value, bytes) else value.size_bytes
            return f"({size} bytes)"
        if isinstance(value, set | frozenset):
            return [self.of(one, depth + 1) for one in value]
        if isinstance(value, int) and abs(value) < _WIDEST_INTEGER:
            return value
        return f"({kind_of(value)})"


def at_tier(value: object, tier: Tier, fingerprint: Fingerprint) -> Any:  # noqa: ANN401  (JSON)
    """*value* as JSON; at T1 with marks in the place of secrets, wherever they stand in texts."""
    plain = Plain().of(value)
    if tier == "T2":
        return plain
    safe, _ = redact_json(plain, fingerprint=fingerprint)
    return safe


def unsayable(value: object) -> bool:
    """Whether something in *value*, which is JSON, stands for what JSON cannot say.

    ``Plain`` writes a word for its kind in its place, as "(a number)" for an infinite one.
    """
    if isinstance(value, str):
        return _IN_PLACE.fullmatch(value) is not None
    if isinstance(value, dict):
        return any(map(unsayable, value.values()))
    if isinstance(value, list) and not set(map(type, value)) <= _NUMBERS:
        return any(map(unsayable, value))
    return False


def _key(name: object) -> str:
    return _sayable(name)[:200] if isinstance(name, str) else f"({kind_of(name)})"


def _sayable(text: str) -> str:
    """*text* without lone surrogates, which JSON cannot say."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
