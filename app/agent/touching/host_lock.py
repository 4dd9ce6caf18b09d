"""One at a time on this host, also among several agents and the command line.

A name in the kernel's abstract socket namespace: whoever has it, has the turn, and the kernel
takes it back when that process ends, however it ends. No file is left behind.
"""

import socket

from app.agent.coredump import refusals


class HostLock:
    """The turn, from now to ``release``; raises Conflict where another has it."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(f"\0{name}")
        except OSError as error:
            self._socket.close()
            raise refusals.dump_running("another process of this host watches one") from error

    def release(self) -> None:
        self._socket.close()
