"""One HTTP/1.1 connection of a replay: one request at a time, read as it arrives.

What comes is stamped and taken in where it is received, not when a task gets its turn: so the
times are those of the network, and a stream of many small pieces costs a fifth of what a general
client needs for it.
"""

import asyncio
import time
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from app.clients.answering import Answering

_MOST_BARE_BYTES = 128 * 1024  # of heads, trailers and chunks, with no body between them
_CONTINUES = range(100, 200)


class Connection(asyncio.Protocol):
    """Open until ``transport`` is closed. *reusable*: the last answer left it fit for the next."""

    transport: asyncio.Transport
    _parser: HttpResponseParser

    def __init__(self) -> None:
        self.reusable = True
        self.idle_since = 0.0
        self._answering: Answering | None = None  # None: nothing was asked, or it is answered
        self._over: asyncio.Future[None] | None = None
        self._at = 0.0
        self._begin()

    @property
    def at_rest(self) -> bool:
        """Whether the last answer is whole and the connection fit for another request."""
        return self.reusable and self._answering is None and not self.transport.is_closing()

    async def exchange(self, request: bytes, answering: Answering) -> None:
        """Write *request* and return once its answer is over, whole or not wanted any more.

        Raises ConnectionError when the connection ended before the answer did.
        """
        if self.transport.is_closing():  # the server spoke first, or left at once
            raise ConnectionAbortedError
        self._over = asyncio.get_running_loop().create_future()
        self._answering = answering
        self._parser = HttpResponseParser(self)
        self._bare_bytes = 0
        self._begin()
        self.transport.write(request)
        await self._over

    def close(self) -> None:
        """At once, whatever is still to be written."""
        self.reusable = False
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are none by their class

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if self._in_body and not self._has_length:  # then its end is that of the connection
            self.on_message_complete()
        self._settle(exc if isinstance(exc, OSError) else ConnectionAbortedError())

    def data_received(self, data: bytes) -> None:
        if self._answering is None:
            self.close()  # nobody asked for more
            return
        self._at = time.monotonic()
        self._bare_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._malformed()
        if self._bare_bytes > _MOST_BARE_BYTES:
            self._malformed()

    # What the parser calls, in this order.

    def on_message_begin(self) -> None:
        if self._answering is None:
            self.reusable = False  # more than was asked for: whose answer is it?

    def on_header(self, name: bytes, value: bytes) -> None:
        match name.lower():
            case b"content-type":
                self._content_type = value.strip().lower()
            case b"content-encoding":
                self._encoding = value.strip().lower()
            case b"location":
                self._location = value.strip()
            case b"content-length" | b"transfer-encoding":
                self._has_length = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status in _CONTINUES or self._answering is None:
            return
        self._in_body = True
        if not self._answering.head(status, self._content_type, self._encoding, self._location):
            self._enough()

    def on_body(self, body: bytes) -> None:
        self._bare_bytes = 0
        if self._answering is not None and not self._answering.piece(body, self._at):
            self._enough()

    def on_message_complete(self) -> None:
        if not self._in_body:
            self._begin()  # an answer 100 or 103 goes before the real one
        elif self._answering is not None:
            self._answering.complete()
            self.reusable = self.reusable and self._parser.should_keep_alive()
            self._settle()

    def _begin(self) -> None:
        self._in_body = self._has_length = False
        self._content_type = self._encoding = self._location = b""

    def _settle(self, error: Exception | None = None) -> None:
        """The answer is over; the first reason holds."""
        self._answering = None
        self._in_body = False
        if self._over is None or self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)

    def _enough(self) -> None:
        """The rest of the answer is not wanted, and so neither is the connection."""
        self._settle()
        self.close()

    def _malformed(self) -> None:
        if self._answering is not None:
            self._answering.sent.fail("malformed-answer", "Not proper HTTP.")
        self._enough()
