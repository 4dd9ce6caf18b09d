"""Sends the requests of a replay to one target over kept connections.

``send`` never fails: whatever happens to a request is how it went. Nothing is sent twice, no
redirect is followed, nothing is unpacked, and neither proxies nor credentials come from the
environment. The address that was checked is the one that is connected to.
"""

import asyncio
import ssl
import time
from typing import Self
from urllib.parse import urlsplit

from app.clients.answering import Answering, Sent
from app.clients.connections import CheckedBackend, tls
from app.clients.presence import Knock
from app.clients.target import TargetAddress
from app.clients.wire import Connection
from app.domain.replay.limits import Limits
from app.domain.replay.outcomes import ErrorClass

# Idle connections are closed before a server does, which may happen while a request is on its
# way to it: uvicorn, and so SGLang, closes them after 5 s.
_KEPT_IDLE_SECONDS = 3.0
_NEXT_ADDRESS_SECONDS = 1.0  # then the next of several addresses is tried
_KNOCK_SECONDS = 2.0
_KNOCK_PATH = "/model_info"  # costs a server nothing; that it is not known there is an answer too
_OWN_HEADERS = {
    "User-Agent": "incident-console",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}


class Line:
    """Open connections to one target, for as long as it is entered."""

    def __init__(self, address: TargetAddress, limits: Limits) -> None:
        base = urlsplit(address.base_url)
        secure = base.scheme == "https"
        self._limits = limits
        self._host = base.hostname or ""
        self._port = base.port or (443 if secure else 80)
        self._tls = tls(address.ca_pem) if secure else None
        self._names = CheckedBackend(address.allowed)
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._heads: dict[str, bytes] = {}
        self._before_path = f"POST {base.path}"
        self._knock = _knock(base.path, base.netloc)
        self._after_path = f" HTTP/1.1\r\nHost: {base.netloc}\r\n{_headers(address)}"

    async def __aenter__(self) -> Self:
        """Looks the name up; raises Rejected and Unreachable, before anything is sent."""
        self._addresses = await self._names.addresses(self._host, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._open:
            connection.close()

    async def send(self, path: str, body: bytes, sent: Sent) -> None:
        """POST *body*, once; how it goes is written into *sent* as it goes.

        Cancelling it leaves there what was measured until then.
        """
        answering = Answering(sent, self._limits)
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                connection = self._kept() or await self._connected()
                sent.kept_line = connection.idle_since > 0
                sent.sent_at = time.monotonic()
                await connection.exchange(self._head(path, len(body)) + body, answering)
        except TimeoutError:
            sent.fail(*_timed_out(sent, self._limits))
        except OSError as error:
            sent.fail(*_broken(error, sent))
        finally:
            sent.ended_at = time.monotonic()
            answering.end()
            self._give_back(connection)

    async def knock(self) -> Knock:
        """Whether anybody is there, whatever is said to a question without a key.

        A server that takes the connection and keeps it open is there, and slow.
        """
        sent = Sent(began_at=time.monotonic())
        connection: Connection | None = None
        try:
            async with asyncio.timeout(_KNOCK_SECONDS):
                connection = await self._first_that_listens()
                await connection.exchange(self._knock, Answering(sent, self._limits))
        except ConnectionRefusedError:
            return "refused"
        except TimeoutError:
            return "silent" if connection is None else "answered"
        except OSError:
            return "silent" if sent.status is None else "answered"
        finally:
            if connection is not None:
                connection.close()
        return "answered"

    def _kept(self) -> Connection | None:
        """The connection that was used last, unless the target may be closing it."""
        oldest = time.monotonic() - _KEPT_IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and connection.idle_since >= oldest:
                return connection
            connection.close()
            self._open.discard(connection)
        return None

    def _give_back(self, connection: Connection | None) -> None:
        if connection is None:
            return
        if connection.at_rest:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()
            self._open.discard(connection)

    async def _connected(self) -> Connection:
        async with asyncio.timeout(self._limits.connect_seconds):
            connection = await self._first_that_listens()
        self._open.add(connection)
        return connection

    async def _first_that_listens(self) -> Connection:
        *others, last = self._addresses
        for address in others:
            try:
                async with asyncio.timeout(_NEXT_ADDRESS_SECONDS):
                    return await self._connect(address)
            except OSError:  # TimeoutError is one
                continue
        return await self._connect(last)

    async def _connect(self, address: str) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            Connection,
            address,
            self._port,
            ssl=self._tls,
            server_hostname=self._host if self._tls else None,
        )
        return connection

    def _head(self, path: str, body_bytes: int) -> bytes:
        head = self._heads.get(path)
        if head is None:
            head = f"{self._before_path}{path}{self._after_path}Content-Length: ".encode("latin-1")
            self._heads[path] = head
        return b"%s%d\r\n\r\n" % (head, body_bytes)


def _knock(path: str, netloc: str) -> bytes:
    lines = (f"GET {path}{_KNOCK_PATH} HTTP/1.1", f"Host: {netloc}", "Connection: close")
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")


def _headers(address: TargetAddress) -> str:
    given = {name.title(): text for name, text in address.headers.items()}
    credential = {"Authorization": f"Bearer {address.token}"} if address.token else {}
    every = {**_OWN_HEADERS, **given, **credential}
    return "".join(f"{name}: {text}\r\n" for name, text in every.items())


def _timed_out(sent: Sent, limits: Limits) -> tuple[ErrorClass, str]:
    if sent.sent_at is None:
        return "unreachable", f"No connection in {limits.connect_seconds:g} s."
    if sent.answer.moments:
        return "timeout", f"It answered, and had not ended after {limits.request_seconds:g} s."
    return "no-first-token", f"No token in {limits.request_seconds:g} s."


def _broken(error: OSError, sent: Sent) -> tuple[ErrorClass, str]:
    """The class of an exchange that broke, and why."""
    if sent.status is not None:
        return "stream-cut", "The connection ended in the middle of the answer."
    if sent.sent_at is not None:
        line = "a connection kept from before" if sent.kept_line else "the connection"
        return "connection-reset", f"The server closed {line} and answered nothing."
    if isinstance(error, ssl.SSLError):
        return "tls-failed", f"TLS failed: {error.reason or error.args[-1]}."
    if isinstance(error, ConnectionRefusedError):
        return "connection-refused", "Nothing listens there."
    if isinstance(error, ConnectionError):
        return "connection-reset", "The server closed the connection as it was made."
    return "unreachable", f"No connection: {error.strerror or type(error).__name__}."
