"""Asks one target one question at a time and never fails: whatever happens is a capture.

Under limits that the target cannot move: one deadline for the whole exchange, a cap on bytes,
no redirects, no compression, no proxies or credentials from the environment, each credential
only where it is needed. Secrets are out of the body before anybody else sees it.
"""

import asyncio
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

import httpcore
from anyio.lowlevel import checkpoint

from app.clients.addresses import check_url
from app.clients.connections import CheckedBackend, tls
from app.clients.silences import SILENCES, silence
from app.domain.capture import Capture, Outcome
from app.domain.endpoints import KIB, Access, Endpoint
from app.domain.outcomes import outcome_of
from app.domain.redaction import Fingerprint, mask_known, redact_body, redact_text
from app.errors import Rejected

NOT_CONNECTED = "No connection"
_KEPT_HEADERS = ("server", "content-type")
_MAX_HEADER_CHARACTERS, _MAX_DETAIL_CHARACTERS = 200, 300
_KEPT_OF_A_CUT_BODY_BYTES = 64 * KIB
# What the exchange itself is made of: where it goes, where it ends, how it is packed.
_OURS_ALONE = frozenset(
    """
    host connection keep-alive proxy-connection content-length transfer-encoding te trailer
    upgrade expect accept-encoding
    """.split()  # noqa: SIM905  (a word list reads best as words)
)
_SECRET_WORD = re.compile(r"[^\s;,]{8,}")  # of a header: "blue" or "https" is in every answer
_IN_PLACE_BYTES = 256 * KIB  # a larger body is redacted in a thread, so that others are not held up


@dataclass(frozen=True, slots=True)
class TargetAddress:
    """Where a target is and how it lets us in; raises Rejected for what must not be asked."""

    base_url: str
    token: str | None = field(default=None, repr=False)
    admin_token: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # for a gateway
    ca_pem: str | None = field(default=None, repr=False)  # trusted alone, instead of the usual
    allowed: tuple[str, ...] = ()  # networks and host names; empty: any but the forbidden

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", check_url(self.base_url))
        for text in (self.token or "", self.admin_token or "", *self.headers.values()):
            if not text.isascii() or not text.isprintable():
                raise Rejected("A token or header holds characters that cannot be sent.")
        for name in self.headers:
            if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
                raise Rejected(f"{name!r} is not the name of a header.")
            if name.lower() in _OURS_ALONE:
                raise Rejected(f"The header {name} is the console's own to send.")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What we send and must never keep when the target echoes it."""
        words = (word for text in self.headers.values() for word in _SECRET_WORD.findall(text))
        return tuple(text for text in (self.token, self.admin_token, *words) if text)


@dataclass(slots=True)
class _Exchange:
    """How far one exchange came; what is here when time is up is what there is."""

    sent: bytes | None = None  # None: nothing, it is only asked
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    location: str = ""
    body: bytearray = field(default_factory=bytearray)
    stage: str = NOT_CONNECTED
    problem: str = ""  # why the answer is not used


class TargetClient:
    """An open line to one target, for one bundle: its name is looked up once."""

    def __init__(
        self,
        address: TargetAddress,
        *,
        fingerprint: Fingerprint,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.address, self.now = address, now
        self._fingerprint = fingerprint
        self._base = urlsplit(address.base_url)
        secure = self._base.scheme == "https"
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls(address.ca_pem) if secure else _no_tls(),
            max_keepalive_connections=0,
            network_backend=CheckedBackend(address.allowed),
        )

    async def __aenter__(self) -> Self:
        await checkpoint()  # loads the engine of anyio, which the first answer's time would pay for
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def ask(self, endpoint: Endpoint, *, timeout_seconds: float | None = None) -> Capture:
        """What *endpoint* said, once, in at most *timeout_seconds* (the endpoint's own if None)."""
        limit = endpoint.timeout_seconds if timeout_seconds is None else timeout_seconds
        return await self._ask(endpoint, _Exchange(), limit)

    async def tell(self, endpoint: Endpoint, body: bytes) -> tuple[Capture, bool]:
        """What *endpoint* said to a POST of *body*, JSON, once; whether it was connected to.

        Where it was, the body may have been taken although no answer came.
        """
        exchange = _Exchange(sent=body)
        capture = await self._ask(endpoint, exchange, endpoint.timeout_seconds)
        return capture, exchange.stage != NOT_CONNECTED

    async def _ask(self, endpoint: Endpoint, exchange: _Exchange, limit: float) -> Capture:
        started_at, start = self.now(), time.monotonic()
        ended: tuple[Outcome, str] | None = None
        try:
            async with asyncio.timeout(limit):
                await self._exchange(endpoint, exchange)
        except TimeoutError:
            ended = Outcome.TIMEOUT, f"{exchange.stage} in {limit:.3g} s."
        except SILENCES as error:
            ended = silence(error)
        seconds = time.monotonic() - start
        capture = await self._captured(endpoint, exchange, ended)
        return replace(capture, started_at=started_at, seconds=seconds)

    async def _exchange(self, endpoint: Endpoint, exchange: _Exchange) -> None:
        async def trace(event: str, _: object) -> None:
            if event == "connection.connect_tcp.complete":
                exchange.stage = "No answer"

        async with self._pool.stream(
            "GET" if exchange.sent is None else "POST",
            self._url(endpoint),
            headers=[*self._headers(endpoint), *_headers_for(exchange.sent)],
            content=exchange.sent,
            extensions={"trace": trace},
        ) as response:
            exchange.status = response.status
            exchange.stage = "The answer began and did not end"
            exchange.headers, other = _headers_of(response)
            exchange.location = other.get("location", "")
            if other.get("content-encoding", "identity").lower() != "identity":
                exchange.problem = "Compressed, although nothing compressed was asked for."
                return
            async for chunk in response.aiter_stream():
                exchange.body += chunk
                if len(exchange.body) > endpoint.max_bytes:
                    exchange.problem = f"More than {endpoint.max_bytes // KIB} KiB; not read on."
                    return

    async def _captured(
        self, endpoint: Endpoint, exchange: _Exchange, ended: tuple[Outcome, str] | None
    ) -> Capture:
        whole = ended is None and not exchange.problem
        body = bytes(exchange.body if whole else exchange.body[:_KEPT_OF_A_CUT_BODY_BYTES])
        body, places = await self._redacted(body)
        if ended is not None:
            outcome, detail = ended
        elif exchange.problem:
            outcome, detail = Outcome.REJECTED, exchange.problem
        else:
            outcome, detail = outcome_of(endpoint.name, exchange.status or 0, body)
        if exchange.location and outcome is Outcome.REJECTED:
            detail = f"Redirects to {exchange.location}; not followed."
        return Capture(
            name=endpoint.name,
            path=endpoint.path,
            outcome=outcome,
            status=exchange.status,
            body=body,
            headers={
                name: self._safe(text)[:_MAX_HEADER_CHARACTERS]
                for name, text in exchange.headers.items()
            },
            detail=self._safe(detail)[:_MAX_DETAIL_CHARACTERS],
            redacted=places,
        )

    async def _redacted(self, body: bytes) -> tuple[bytes, tuple[str, ...]]:
        def redacted() -> tuple[bytes, tuple[str, ...]]:
            secrets = self.address.secrets
            return redact_body(body, fingerprint=self._fingerprint, secrets=secrets)

        return redacted() if len(body) <= _IN_PLACE_BYTES else await asyncio.to_thread(redacted)

    def _safe(self, text: str) -> str:
        text = mask_known(text, self.address.secrets, fingerprint=self._fingerprint)
        return redact_text(text, fingerprint=self._fingerprint)[0]

    def _url(self, endpoint: Endpoint) -> httpcore.URL:
        base = self._base
        return httpcore.URL(
            scheme=base.scheme,
            host=base.hostname or "",
            port=base.port,
            target=base.path + endpoint.path,
        )

    def _headers(self, endpoint: Endpoint) -> list[tuple[bytes | str, bytes | str]]:
        """The admin key is no superset of the user key, so each goes only where it belongs."""
        token = {
            Access.OPEN: None,
            Access.NORMAL: self.address.token,
            Access.ADMIN: self.address.admin_token or self.address.token,
        }[endpoint.access]
        own = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
        given = {name.title(): text for name, text in self.address.headers.items()}
        credential = {"Authorization": f"Bearer {token}"} if token else {}
        all_of = {**own, "User-Agent": "incident-console", **given, **credential}
        return list(all_of.items())


def _headers_for(body: bytes | None) -> list[tuple[bytes | str, bytes | str]]:
    if body is None:
        return []
    return [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]


def _headers_of(response: httpcore.Response) -> tuple[dict[str, str], dict[str, str]]:
    """The headers that are kept, and all of them; names in lower case."""
    every = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
    }
    return {name: every[name] for name in _KEPT_HEADERS if name in every}, every


def _no_tls() -> ssl.SSLContext:
    """A context that is never used: loading what this machine trusts takes 20 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
