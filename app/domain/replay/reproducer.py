"""The smallest set of requests as things to hand on: curl commands, and a fixture for a test."""

import shlex
from collections.abc import Iterable
from typing import Any

import orjson

from app.domain.replay.planned import Sending

LONGEST_INLINE_BYTES = 4096  # a longer body is in a file beside the command
TOKEN_VARIABLE = "TARGET_TOKEN"  # noqa: S105  (its name, for the shell that has it)


def curl(sending: Sending, base_url: str, *, with_token: bool = False) -> str:
    """A command that sends the request; a long body is read from ``request-<index>.json``.

    The token itself is never in it: the shell puts it in from TARGET_TOKEN.
    """
    url = shlex.quote(base_url.rstrip("/") + sending.path)
    parts = ["curl -sS", "-N" if sending.stream else "", url, "-H 'Content-Type: application/json'"]
    if with_token:
        parts.append(f'-H "Authorization: Bearer ${TOKEN_VARIABLE}"')
    if len(sending.body) <= LONGEST_INLINE_BYTES:
        parts.append(f"--data-raw {shlex.quote(sending.body.decode())}")
    else:
        parts.append(f"--data-binary @{body_file(sending)}")
    return " ".join(part for part in parts if part)


def body_file(sending: Sending) -> str:
    """What a file with its body is called."""
    return f"request-{sending.index}.json"


def fixture(sendings: Iterable[Sending]) -> bytes:
    """The requests as JSON lines, in order, which replay and the bisect harness read."""
    return b"".join(orjson.dumps(_line(one), option=orjson.OPT_APPEND_NEWLINE) for one in sendings)


def _line(sending: Sending) -> dict[str, Any]:
    return {
        "index": sending.index,
        "rid": sending.rid,
        "endpoint": sending.path,
        "due_seconds": sending.due_seconds,
        "stream": sending.stream,
        "payload": orjson.Fragment(sending.body),
    }
