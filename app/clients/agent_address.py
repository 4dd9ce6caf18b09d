"""Where an agent is, and how both sides know each other."""

import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

import httpx

from app.clients.addresses import check_url
from app.errors import Rejected

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
INSIDE = "http://inside"  # of an agent in this process, reached without a network

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """An agent to ask. *agent_id* None: it is asked first. *transport*: instead of a network."""

    url: str
    agent_id: str | None
    key: bytes = field(repr=False)
    tls_fingerprint: str | None = None  # SHA-256 of its certificate in DER form, 64 hex digits
    transport: httpx.AsyncBaseTransport | None = None

    @classmethod
    def read(cls, url: str, key: str, tls_fingerprint: str | None = None) -> Self:
        """What a person typed, checked; raises Rejected for what may not be asked."""
        url, key = check_url(url.strip()), key.strip().lower()
        parts = urlsplit(url)
        if parts.path:
            raise Rejected("The URL of an agent has no path.", fix="Give https://host:port only.")
        if not _KEY.fullmatch(key):
            raise Rejected(
                "The key of an agent is 64 hexadecimal digits.",
                fix="Copy what this command shows on the host.",
                command="incident-console agent key",
            )
        return cls(
            url, None, bytes.fromhex(key), _fingerprint(parts.hostname or "", url, tls_fingerprint)
        )


def _fingerprint(host: str, url: str, given: str | None) -> str | None:
    if url.startswith("http://"):
        if host not in LOOPBACK:
            raise Rejected(
                f"{host} is another machine; its agent is asked by https only.",
                why="Whoever listens in between could read what processes hold.",
                fix="Start the agent with a --host of its own: it then makes a certificate.",
            )
        return None
    digits = (given or "").strip().lower().replace(":", "")
    if not _KEY.fullmatch(digits):
        raise Rejected(
            "An https agent is known by the fingerprint of its certificate, 64 hexadecimal digits.",
            fix="Copy it from what the agent printed when it started.",
        )
    return digits
