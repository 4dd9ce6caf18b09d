"""Sends one small body to a target, once. What became of it is told, never guessed or retried."""

import asyncio

from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Capture, Outcome
from app.domain.endpoints import KIB, Access, Endpoint, Form
from app.domain.recording import PATH, Answered
from app.domain.redaction import Fingerprint

TIMEOUT_SECONDS = 10.0
_MOST_WORDS = 200

CONFIGURE_LOGGING = Endpoint(
    "configure_logging", PATH, "Where are finished requests written?", "Writes files on its host.",
    Access.ADMIN, Form.TEXT, timeout_seconds=TIMEOUT_SECONDS, max_bytes=64 * KIB,
)  # fmt: skip


async def configure_logging(client: TargetClient, body: bytes) -> Answered:
    """What the target answered to *body*; only this server gets the admin token."""
    capture, connected = await client.tell(CONFIGURE_LOGGING, body)
    whole = capture.outcome not in (Outcome.TIMEOUT, Outcome.ERROR, Outcome.REFUSED)
    return Answered(
        status=capture.status if whole else None,
        detail=capture.detail or _words(capture),
        nothing_sent=not connected,
    )


def _words(capture: Capture) -> str:
    """What a refusal says; secrets are out of it already."""
    refused = capture.status is not None and capture.status >= 400
    return capture.body[:_MOST_WORDS].decode("utf-8", "replace").strip() if refused else ""


def ask_to(address: TargetAddress, body: bytes, times: int, fingerprint: Fingerprint) -> Answered:
    """Send *body* so many times, each over a connection of its own, until one is not taken."""

    async def send() -> Answered:
        async with TargetClient(address, fingerprint=fingerprint) as client:
            answered = await configure_logging(client, body)
            for _ in range(times - 1):
                if answered.status != 200:
                    break
                answered = await configure_logging(client, body)
            return answered

    return asyncio.run(send())
