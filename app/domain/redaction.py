"""Secrets out of captured answers, before anything else sees them; names and shape stay.

A secret becomes ``‹redacted:ab12cd34›``: the same secret gives the same mark under one key,
so that a diff can say "changed" and nobody can say what it was.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import orjson

from app.domain.plain_json import Json, read_json
from app.domain.secret_names import is_secret_name
from app.domain.secret_text import is_marked, marked, redact_line, suspect_lines
from app.errors import Malformed

Fingerprint = Callable[[str], str]

_MAX_JSON_IN_STRING = 1 << 20
_MAX_JSON_INSIDE_JSON = 2  # strings in strings; deeper ones are read as text, so no stack is spent
_MAX_DEPTH_INSIDE_JSON = 32
_MAX_PLACES = 1000  # that are told; all are masked
_MIN_KNOWN_SECRET = 4  # a shorter one would be found in ordinary words


def keyed_fingerprint(key: bytes) -> Fingerprint:
    """A function from a secret to eight hex digits that say nothing without *key*."""

    def fingerprint(secret: str) -> str:
        digest = hmac.new(key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return digest.hexdigest()[:8]

    return fingerprint


def redact_body(
    body: bytes, *, fingerprint: Fingerprint, secrets: Iterable[str] = ()
) -> tuple[bytes, tuple[str, ...]]:
    """*body* without secrets, and where they stood: JSON pointers, or lines of a text.

    *secrets* are those that we sent ourselves: an answer that echoes one loses it wherever it
    stands, also where JSON spells it with escapes. A body without secrets comes back byte for
    byte.
    """
    known = _known(secrets)
    body, places = _without_known(body, fingerprint, known)
    if body.lstrip()[:1] in (b"{", b"["):
        try:
            value, pointers = redact_json(read_json(body), fingerprint=fingerprint, secrets=known)
        except Malformed:
            pass  # then it is a text like any other
        else:
            return (orjson.dumps(value) if pointers else body), (*places, *pointers)[:_MAX_PLACES]
    safe, lines = _redacted_lines(body, fingerprint)
    return safe, (*places, *lines)[:_MAX_PLACES]


def redact_json(
    value: Json, *, fingerprint: Fingerprint, secrets: Iterable[str] = ()
) -> tuple[Json, tuple[str, ...]]:
    """*value* without secrets in any nested copy, and the JSON pointers where they stood.

    Looks into strings that hold JSON, into argument lists and command lines as well; the
    pointer is then that of the string.
    """
    redaction = _Redaction(fingerprint, _known(secrets))
    return redaction.of(value, ""), tuple(redaction.pointers)


def redact_text(text: str, *, fingerprint: Fingerprint) -> tuple[str, tuple[str, ...]]:
    """*text* without secrets, and the lines where they stood, as ``line 3``."""
    safe, places = _redacted_lines(text.encode("utf-8", "surrogatepass"), fingerprint)
    return (safe.decode("utf-8", "surrogatepass") if places else text), places


def _redacted_lines(body: bytes, fingerprint: Fingerprint) -> tuple[bytes, tuple[str, ...]]:
    parts, places, number, copied = [], [], 1, 0
    for start, end in suspect_lines(body):
        number += body.count(b"\n", copied, start)
        line = body[start:end].decode("utf-8", "replace")
        safe = redact_line(line, fingerprint)
        if safe != line:
            parts += [body[copied:start], safe.encode()]
            places.append(f"line {number}")
        else:
            parts.append(body[copied:end])
        copied = end
    return b"".join([*parts, body[copied:]]), tuple(places)


def _known(secrets: Iterable[str]) -> tuple[str, ...]:
    """Those that can be told from ordinary words, the longest first: one may hold another."""
    long_enough = {secret for secret in secrets if len(secret) >= _MIN_KNOWN_SECRET}
    return tuple(sorted(long_enough, key=len, reverse=True))


def mask_known(text: str, secrets: Iterable[str], *, fingerprint: Fingerprint) -> str:
    """*text* with marks in the place of *secrets* that we sent ourselves."""
    return _without(text, _known(secrets), fingerprint)


def _without(text: str, known: tuple[str, ...], fingerprint: Fingerprint) -> str:
    for secret in known:
        if secret in text:
            text = text.replace(secret, marked(secret, fingerprint))
    return text


def _without_known(
    body: bytes, fingerprint: Fingerprint, known: tuple[str, ...]
) -> tuple[bytes, tuple[str, ...]]:
    found = False
    for secret in known:
        if secret.encode() in body:
            body = body.replace(secret.encode(), marked(secret, fingerprint).encode())
            found = True
    return body, ("a credential of ours, echoed",) if found else ()


@dataclass(slots=True)
class _Redaction:
    """One walk through a value; what was masked is noted on the way."""

    fingerprint: Fingerprint
    known: tuple[str, ...] = ()  # what we sent ourselves
    inside: int = 0  # how many strings of JSON we are inside of
    pointers: list[str] = field(default_factory=list)

    def of(self, value: Json, at: str) -> Json:
        match value:
            case dict():
                return {
                    self._without_known(name, at): self._member(name, child, at)
                    for name, child in value.items()
                }
            case list():
                return self._list(value, at)
            case str():
                return self._string(value, at)
        return value

    def _member(self, name: str, value: Json, at: str) -> Json:
        place = f"{at}/{_escaped(name)}"
        return self._masked(value, place) if is_secret_name(name) else self.of(value, place)

    def _list(self, values: list[Json], at: str) -> list[Json]:
        """A list, in which the word after ``--api-key`` is a secret: it may be an argument list."""
        safe, flag = [], False
        for index, value in enumerate(values):
            secret = flag and isinstance(value, str) and not value.startswith("--")
            place = f"{at}/{index}"
            safe.append(self._masked(value, place) if secret else self.of(value, place))
            flag = isinstance(value, str) and value.startswith("--") and is_secret_name(value)
        return safe

    def _without_known(self, text: str, at: str) -> str:
        safe = _without(text, self.known, self.fingerprint)
        self.pointers += [at] if safe != text else []
        return safe

    def _string(self, text: str, at: str) -> str:
        text = self._without_known(text, at)
        found = self._json_in(text)
        if found is None:
            safe, places = redact_text(text, fingerprint=self.fingerprint)
        else:
            safe, places = found
        self.pointers += [at] if places else []
        return safe

    def _json_in(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        """The JSON that *text* holds, redacted; None where it holds none."""
        if text[:1] not in ("{", "[") or len(text) > _MAX_JSON_IN_STRING:
            return None
        if self.inside >= _MAX_JSON_INSIDE_JSON:
            return None
        try:
            value = read_json(text.encode(), max_depth=_MAX_DEPTH_INSIDE_JSON)
        except (Malformed, UnicodeEncodeError):
            return None
        inner = _Redaction(self.fingerprint, self.known, self.inside + 1)
        safe = inner.of(value, "")
        return (orjson.dumps(safe).decode() if inner.pointers else text), tuple(inner.pointers)

    def _masked(self, value: Json, at: str) -> Json:
        """Every string and number inside *value* as a mark; what is empty or marked stays."""
        match value:
            case dict():
                return {
                    name: self._masked(child, f"{at}/{_escaped(name)}")
                    for name, child in value.items()
                }
            case list():
                return [self._masked(child, f"{at}/{index}") for index, child in enumerate(value)]
            case bool() | None:
                return value
        secret = str(value)
        if not secret or is_marked(secret):
            return value
        self.pointers.append(at)
        return marked(secret, self.fingerprint)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
