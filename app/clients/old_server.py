"""Whether the server that was there before a restart is still there."""

import socket
from typing import Self
from urllib.parse import urlsplit

_CONNECT_SECONDS = 1.0
_PORTS = {"http": 80, "https": 443}


class OldServer:
    """A connection on which nothing is ever said: it is open as long as the server lives.

    One that is open still proves that nothing was restarted, however well it answers. A server
    behind a proxy, or one that closes silent connections, cannot be told so.
    """

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        try:
            port = parts.port or _PORTS[parts.scheme]
            self._connection: socket.socket | None = socket.create_connection(
                (parts.hostname or "", port), _CONNECT_SECONDS
            )
            self._connection.settimeout(0)
        except OSError:
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def is_gone(self) -> bool:
        """Whether it has ended, or was not there."""
        if self._connection is None:
            return True
        try:
            return not self._connection.recv(1)
        except BlockingIOError:
            return False
        except OSError:
            return True
