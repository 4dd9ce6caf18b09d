"""The exact request as somebody has it, by paste: JSON, a line of JSONL, or a curl command.

What is kept is one line of the JSONL of requests. The text of a prompt stays as it is, since it
is the evidence; values under names of secrets, and keys of ours, are masked before disk. Headers,
users and addresses are not kept at all.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from app.domain.curl import is_curl, read_curl
from app.domain.plain_json import read_json
from app.domain.redaction import Fingerprint, mask_known
from app.domain.secret_names import is_secret_name
from app.domain.secret_text import is_marked, marked
from app.errors import Malformed, Rejected

ENDPOINTS = ("/generate", "/v1/chat/completions", "/v1/completions", "/encode")
MAX_BYTES = 3 * 1024**2  # a form is spelt out in up to three times as many
_TOLD_BY = (
    ("messages", "/v1/chat/completions"),
    ("prompt", "/v1/completions"),
    ("text", "/generate"),
    ("input_ids", "/generate"),
    ("input_embeds", "/generate"),
)


@dataclass(frozen=True, slots=True)
class SavedRequest:
    """One line of JSONL, and what was taken out of it."""

    endpoint: str
    line: bytes
    redacted: tuple[str, ...]
    left_out: tuple[str, ...]  # names of headers and the like that are not kept


def saved_request(
    text: str, *, fingerprint: Fingerprint, endpoint: str | None = None, secrets: tuple[str, ...]
) -> SavedRequest:
    """What is kept of *text*; *endpoint* where the text itself does not tell it.

    Raises Malformed and Rejected.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise Rejected(
            f"It has more than {MAX_BYTES // 1024**2} MiB.", fix="Attach it as a file instead."
        )
    body, told, left_out = _from_curl(text) if is_curl(text) else (text, None, ())
    value = read_json(body.strip().encode("utf-8", "surrogatepass"))
    if not isinstance(value, dict):
        raise Malformed("One request is a JSON object; this is none.", fix="Attach many as a file.")
    line = _line(value, told or endpoint)
    masking = _Masking(fingerprint, secrets)
    line["payload"] = masking.of(line["payload"], "")
    return SavedRequest(
        line["endpoint"], orjson.dumps(line) + b"\n", tuple(masking.places), left_out
    )


def _from_curl(text: str) -> tuple[str, str, tuple[str, ...]]:
    curl = read_curl(text)
    if curl.body is None:
        raise Malformed("The command sends no body, so there is no request to keep.")
    endpoint = _endpoint_of(urlsplit(curl.url).path)
    names = [*curl.headers, *(["user"] if curl.user is not None else [])]
    return curl.body, endpoint, tuple(names)


def _endpoint_of(path: str) -> str:
    """Below any prefix that a gateway may put before it."""
    found = next((one for one in ENDPOINTS if path.rstrip("/").endswith(one)), None)
    if found is None:
        known = ", ".join(ENDPOINTS)
        raise Rejected(f"The URL ends in no endpoint that makes a request: {known}.")
    return found


def _line(value: dict[str, Any], endpoint: str | None) -> dict[str, Any]:
    """*value* as a line: it may be one already."""
    if isinstance(payload := value.get("payload"), dict):
        told = value.get("endpoint") or endpoint or _inferred(payload)
        if told not in ENDPOINTS:
            raise Malformed("The line names no known endpoint.")
        return {"index": 0, "rid": _rid(value, payload), "endpoint": told, "payload": payload}
    endpoint = endpoint or _inferred(value)
    if endpoint not in ENDPOINTS:
        raise Rejected(f"{endpoint[:80]} is no endpoint that makes a request.")
    return {"index": 0, "rid": _rid(value, value), "endpoint": endpoint, "payload": value}


def _rid(*places: dict[str, Any]) -> str | None:
    return next((rid for one in places if isinstance(rid := one.get("rid"), str)), None)


def _inferred(payload: dict[str, Any]) -> str:
    found = next((endpoint for key, endpoint in _TOLD_BY if key in payload), None)
    if found is None:
        raise Malformed(
            "It has neither messages, prompt, text nor input_ids.",
            fix="Paste the body of the request, or choose its endpoint.",
        )
    return found


@dataclass
class _Masking:
    """Values under names of secrets out of a payload; JSON here is at most 64 levels deep."""

    fingerprint: Fingerprint
    secrets: tuple[str, ...]

    def __post_init__(self) -> None:
        self.places: list[str] = []

    def of(self, value: Any, place: str) -> Any:  # noqa: ANN401  (any JSON)
        if isinstance(value, dict):
            return {key: self._named(key, one, f"{place}/{key}") for key, one in value.items()}
        if isinstance(value, list):
            return [self.of(one, f"{place}/{number}") for number, one in enumerate(value)]
        return self._text(value, place) if isinstance(value, str) else value

    def _named(self, name: str, value: Any, place: str) -> Any:  # noqa: ANN401
        if isinstance(value, str) and value and is_secret_name(name) and not is_marked(value):
            self.places.append(place)
            return marked(value, self.fingerprint)
        return self.of(value, place)

    def _text(self, text: str, place: str) -> str:
        safe = mask_known(text, self.secrets, fingerprint=self.fingerprint)
        if safe != text:
            self.places.append(place)
        return safe
