"""One conversation with NCCL's RAS: a line protocol over TCP, since NCCL 2.24.

``CLIENT PROTOCOL n`` is answered by ``SERVER PROTOCOL n``; ``SET FORMAT json`` by ``OK`` since
NCCL 2.28.7; after ``VERBOSE STATUS`` the other side writes its status and closes.
"""

import socket
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from app.errors import Rejected, Unreachable

CONNECT_SECONDS = 1.0
READING_SECONDS = 15.0
MAX_BYTES = 4 * 1024 * 1024
_MAX_LINE_BYTES = 1024
_PIECE_BYTES = 65_536
_END = b"\n"

Connect = Callable[[float], socket.socket]  # seconds to wait → a connection


@dataclass(frozen=True, slots=True)
class Reading:
    """What NCCL said; *cut* where it said more than is kept, or not to the end in time."""

    data: bytes
    form: Literal["json", "text"]
    cut: bool
    seconds: float


def read_status(connect: Connect, *, reading_seconds: float = READING_SECONDS) -> Reading:
    """NCCL's verbose status. Raises Unreachable, and Rejected when it is not NCCL that answers."""
    began = time.monotonic()
    deadline = began + reading_seconds
    try:
        with closing(_Line(connect, deadline)) as line:
            line.greet()
            if line.ask("SET FORMAT json") == "OK":
                return line.status("json", began)
        with closing(_Line(connect, deadline)) as line:  # before 2.28.7: text, afresh
            line.greet()
            return line.status("text", began)
    except TimeoutError as error:
        raise Unreachable(
            f"NCCL RAS did not answer within {reading_seconds:g} s.",
            fix="Take the stacks; a process that stands still does not answer here.",
        ) from error
    except ConnectionRefusedError as error:
        raise Unreachable("NCCL RAS does not listen there any more.") from error
    except OSError as error:
        raise Unreachable(f"NCCL RAS broke off: {error.strerror or error}.") from error


class _Line:
    """A connection, read line by line, up to one deadline."""

    def __init__(self, connect: Connect, deadline: float) -> None:
        self._deadline = deadline
        self._unread = bytearray()
        self._socket = connect(min(CONNECT_SECONDS, self._left()))

    def close(self) -> None:
        self._socket.close()

    def greet(self) -> None:
        """Raises Rejected where the other side is not NCCL's."""
        answer = self.ask("CLIENT PROTOCOL 2")
        if not answer.upper().startswith("SERVER PROTOCOL "):
            raise Rejected(
                "What listens there does not speak the protocol of NCCL RAS.",
                fix="See which program has the port, and set NCCL_RAS_ADDR at the next start.",
            )

    def ask(self, command: str) -> str:
        """Its one line of answer; "" where it hangs up instead."""
        self._send(command)
        while _END not in self._unread and len(self._unread) <= _MAX_LINE_BYTES:
            if not self._receive():
                return ""
        line, _, rest = bytes(self._unread).partition(_END)
        self._unread = bytearray(rest)
        return line[:_MAX_LINE_BYTES].decode("utf-8", "replace").strip()

    def status(self, form: Literal["json", "text"], began: float) -> Reading:
        """All that it says until it closes, cut at the limit of bytes or at the deadline."""
        self._send("VERBOSE STATUS")
        cut = False
        try:
            while len(self._unread) <= MAX_BYTES and self._receive():
                pass
        except (TimeoutError, ConnectionError):
            if not self._unread:
                raise
            cut = True
        cut = cut or len(self._unread) > MAX_BYTES
        return Reading(bytes(self._unread[:MAX_BYTES]), form, cut, time.monotonic() - began)

    def _send(self, command: str) -> None:
        self._socket.settimeout(self._left())
        self._socket.sendall(command.encode() + _END)

    def _receive(self) -> bool:
        self._socket.settimeout(self._left())
        piece = self._socket.recv(_PIECE_BYTES)
        self._unread += piece
        return bool(piece)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
