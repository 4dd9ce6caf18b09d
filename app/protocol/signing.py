"""Signatures of requests and answers: HMAC-SHA256 with the agent's key.

A request is bound to one agent, one moment, one nonce and the person who asked, so that it can
neither be altered, repeated, kept for later, sent to another agent nor be said to be another's.
An answer is bound to its request. What the agent refuses because it does not know who asks is
answered without a signature.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote, unquote

AGENT = "x-agent-id"
TIME = "x-agent-time"  # whole seconds since 1970
NONCE = "x-agent-nonce"  # 32 hexadecimal digits
ACTOR = "x-agent-actor"  # who asked the console for it, percent-encoded
SIGNATURE = "x-agent-signature"

SKEW_SECONDS = 60
MAX_PIECE_BYTES = 8 * 1024**2  # of a file in one answer: answers are signed whole
_MAX_ACTOR_CHARACTERS = 600  # encoded


@dataclass(frozen=True, slots=True)
class Signed:
    """What a request says of itself."""

    agent_id: str
    time: int
    nonce: str
    actor: str = ""  # "" where no person asked

    def headers(self, key: bytes, method: str, target: str, body: bytes) -> dict[str, str]:
        """What to send; *target* is path and query as they stand in the request line."""
        return {
            AGENT: self.agent_id,
            TIME: str(self.time),
            NONCE: self.nonce,
            ACTOR: quote(self.actor, safe=""),
            SIGNATURE: request_signature(key, self, method, target, body),
        }


def read(headers: Mapping[str, str]) -> tuple[Signed, str] | None:
    """What a request says of itself and its signature; None when a part is missing or odd."""
    agent_id, time, nonce = (headers.get(name, "") for name in (AGENT, TIME, NONCE))
    signature, actor = headers.get(SIGNATURE, ""), headers.get(ACTOR, "")
    if not (agent_id and time.isascii() and time.isdigit() and len(time) <= 12):
        return None
    if len(nonce) != 32 or len(signature) != 64 or len(actor) > _MAX_ACTOR_CHARACTERS:
        return None
    return Signed(agent_id, int(time), nonce, unquote(actor)), signature


def request_signature(key: bytes, signed: Signed, method: str, target: str, body: bytes) -> str:
    """Hexadecimal; over all that decides what the agent will do."""
    parts = (signed.agent_id, str(signed.time), signed.nonce, signed.actor, method.upper(), target)
    return _over(key, "request", *parts, sha256(body).hexdigest())


def answer_signature(key: bytes, nonce: str, status: int, body: bytes) -> str:
    """Hexadecimal; *nonce* is the request's."""
    return _over(key, "answer", nonce, str(status), sha256(body).hexdigest())


def same(one: str, other: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def _over(key: bytes, *parts: str) -> str:
    # Lengths before the parts: no two different lists give the same text.
    text = "".join(f"{len(part.encode())}:{part}," for part in parts)
    return hmac.new(key, text.encode(), sha256).hexdigest()
