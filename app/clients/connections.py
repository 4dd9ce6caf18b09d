"""Connections to one target: its name is looked up once, checked, and that very address used."""

import asyncio
import socket
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

import httpcore

from app.clients.addresses import check_address
from app.errors import Rejected, Unreachable

_SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)

_NEXT_ADDRESS_SECONDS = 1.0  # then the next of several addresses is tried


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that may be asked; a name cannot lead elsewhere later."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed
        self._plain = httpcore.AnyIOBackend()
        self._lookups: dict[tuple[str, int], asyncio.Task[list[str]]] = {}

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the signature is httpcore's)
        local_address: str | None = None,
        socket_options: Iterable[_SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        *others, last = await self.addresses(host, port)
        for address in others:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await self._plain.connect_tcp(
                    address, port, _NEXT_ADDRESS_SECONDS, local_address, socket_options
                )
        return await self._plain.connect_tcp(last, port, timeout, local_address, socket_options)

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of *host*, all checked; looked up once, also when several ask at once."""
        lookup = self._lookups.get((host, port))
        if lookup is None or (lookup.done() and lookup.exception()):
            lookup = self._lookups[host, port] = asyncio.create_task(_look_up(host, port))
        addresses = await asyncio.shield(lookup)
        for address in addresses:
            check_address(address, self._allowed, host=host)
        return addresses


def tls(ca_pem: str | None) -> ssl.SSLContext:
    """A context that trusts *ca_pem* alone, or what this machine trusts; raises Rejected."""
    try:
        return ssl.create_default_context(cadata=ca_pem)
    except (ssl.SSLError, ValueError) as error:
        raise Rejected("The CA file holds no certificate in PEM form.") from error


async def _look_up(host: str, port: int) -> list[str]:
    """The addresses of *host*, in a thread of its own.

    The event loop's threads are waited for when it closes; a name server that is silent would
    then outlast every deadline.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def settle(found: list[Any] | OSError) -> None:
        if answer.done():
            return
        if isinstance(found, OSError):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def ask() -> None:
        found: list[Any] | OSError
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            found = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, found)

    Thread(target=ask, daemon=True, name="look-up").start()
    try:
        found = await answer
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"The name {host} is not known.", nothing_sent=True) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
