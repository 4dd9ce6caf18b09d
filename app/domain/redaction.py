"""Secrets out of captured answers, before anything else sees them; names and shape stay.

A secret becomes ``‹redacted:ab12cd34›``: the same secret gives the same mark under one key,
so that a diff can say "changed" and nobody can say what it was.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable

import orjson

from app.domain.plain_json import Json, read_json
from app.domain.secret_names import is_secret_name
from app.domain.secret_text import is_marked, marked, redact_line, suspect_lines
from app.errors import Malformed

Fingerprint = Callable[[str], str]

_MAX_JSON_IN_STRING = 1 << 20
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
    stands. A body without secrets comes back byte for byte.
    """
    body, places = _without_known(body, fingerprint, secrets)
    if body.lstrip()[:1] in (b"{", b"["):
        try:
            value, pointers = redact_json(read_json(body), fingerprint=fingerprint)
        except Malformed:
            pass  # then it is a text like any other
        else:
            return (orjson.dumps(value) if pointers else body), (*places, *pointers)
    safe, lines = _redacted_lines(body, fingerprint)
    return safe, (*places, *lines)


def redact_json(value: Json, *, fingerprint: Fingerprint) -> tuple[Json, tuple[str, ...]]:
    """*value* without secrets in any nested copy, and the JSON pointers where they stood.

    Looks into strings that hold JSON, into argument lists and command lines as well; the
    pointer is then that of the string.
    """
    pointers: list[str] = []
    return _redacted(value, "", fingerprint, pointers), tuple(pointers)


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


def _without_known(
    body: bytes, fingerprint: Fingerprint, secrets: Iterable[str]
) -> tuple[bytes, tuple[str, ...]]:
    found = False
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _MIN_KNOWN_SECRET and secret.encode() in body:
            body = body.replace(secret.encode(), marked(secret, fingerprint).encode())
            found = True
    return body, ("a credential of ours, echoed",) if found else ()


def _redacted(value: Json, at: str, fingerprint: Fingerprint, pointers: list[str]) -> Json:
    match value:
        case dict():
            return {
                name: _redacted_member(name, child, f"{at}/{_escaped(name)}", fingerprint, pointers)
                for name, child in value.items()
            }
        case list():
            return _redacted_list(value, at, fingerprint, pointers)
        case str():
            return _redacted_string(value, at, fingerprint, pointers)
    return value


def _redacted_member(
    name: str, value: Json, at: str, fingerprint: Fingerprint, pointers: list[str]
) -> Json:
    if is_secret_name(name):
        return _masked(value, at, fingerprint, pointers)
    return _redacted(value, at, fingerprint, pointers)


def _redacted_list(
    values: list[Json], at: str, fingerprint: Fingerprint, pointers: list[str]
) -> list[Json]:
    """A list, in which the word after ``--api-key`` is a secret: it may be an argument list."""
    safe, flag = [], ""
    for index, value in enumerate(values):
        place = f"{at}/{index}"
        if flag and isinstance(value, str) and not value.startswith("--"):
            safe.append(_masked(value, place, fingerprint, pointers))
        else:
            safe.append(_redacted(value, place, fingerprint, pointers))
        flag = value if _is_secret_flag(value) else ""
    return safe


def _redacted_string(text: str, at: str, fingerprint: Fingerprint, pointers: list[str]) -> str:
    if text[:1] in ("{", "[") and len(text) <= _MAX_JSON_IN_STRING:
        try:
            inner: list[str] = []
            value = _redacted(read_json(text.encode("utf-8")), at, fingerprint, inner)
        except (Malformed, UnicodeEncodeError):
            pass  # looks like JSON and is none
        else:
            pointers.extend([at] if inner else [])
            return orjson.dumps(value).decode() if inner else text
    safe, lines = redact_text(text, fingerprint=fingerprint)
    pointers.extend([at] if lines else [])
    return safe


def _masked(value: Json, at: str, fingerprint: Fingerprint, pointers: list[str]) -> Json:
    """Every string and number inside *value* as a mark; what is empty or marked stays."""
    match value:
        case dict():
            return {
                name: _masked(child, f"{at}/{_escaped(name)}", fingerprint, pointers)
                for name, child in value.items()
            }
        case list():
            return [
                _masked(child, f"{at}/{index}", fingerprint, pointers)
                for index, child in enumerate(value)
            ]
        case bool() | None:
            return value
    secret = str(value)
    if not secret or is_marked(secret):
        return value
    pointers.append(at)
    return marked(secret, fingerprint)


def _is_secret_flag(value: Json) -> bool:
    return isinstance(value, str) and value.startswith("--") and is_secret_name(value)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
