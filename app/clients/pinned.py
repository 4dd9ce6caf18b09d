"""Connections to one agent: only to the certificate that was registered."""

import hashlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpcore
import httpx

from app.clients.connections import CheckedBackend
from app.errors import Unreachable


class PinnedTransport(httpx.AsyncBaseTransport):
    """Sends nothing before the certificate of the other side has the *fingerprint*.

    None: plain http, which ``AgentAddress`` allows to this machine only.
    """

    def __init__(self, fingerprint: str | None) -> None:
        self._fingerprint = fingerprint
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_unverified(),
            max_connections=1,
            network_backend=CheckedBackend(()),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        url = request.url
        response = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions={**request.extensions, "trace": self._check},
            )
        )
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def _check(self, event: str, told: dict[str, Any]) -> None:
        if event != "connection.start_tls.complete":
            return
        stream: httpcore.AsyncNetworkStream = told["return_value"]
        certificate = stream.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
        seen = hashlib.sha256(certificate).hexdigest()
        if seen != self._fingerprint:
            await stream.aclose()
            raise Unreachable(
                "The certificate is not the one that was registered; nothing was sent.",
                why=f"Registered: {self._fingerprint}. Seen: {seen}.",
                fix="If the agent made a new certificate, register the host again with the "
                "fingerprint that it prints. If not, somebody stands in between.",
                nothing_sent=True,
            )


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_stream():
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


def _unverified() -> ssl.SSLContext:
    """A context that trusts nobody by name: the fingerprint alone decides."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
