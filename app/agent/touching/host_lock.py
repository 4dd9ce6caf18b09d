"""One at a time on this host, also among several agents and the command line.

A name in the kernel's abstract socket namespace: whoever has it, has the turn, and the kernel
takes it back when that process ends, however it ends. No file is left behind. Those of one network
namespace see each other; who is in another one has only his own turn to lose.

Anybody may take any such name. So a turn counts only where its holder listens, by which the kernel
tells his user, and where that user may touch the process at all; others cannot keep us off it.
"""

import errno
import os
import socket
import struct
import time
from contextlib import suppress

from app.errors import Conflict

_WAITING = 4096  # who asks whose turn it is is never answered, and waits in this line
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_STARTS_SECONDS = 0.02  # between taking a name and listening on it


class HostLock:
    """The turn, from now to ``release``; raises *taken* where another has it.

    *owner*: the user of the process that it is about, who may touch it as root and we may.
    """

    def __init__(self, name: str, *, taken: Conflict, owner: int | None = None) -> None:
        self._socket: socket.socket | None = None
        try:
            self._socket = _bound(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Conflict(
                    "Whether another tool is at work here cannot be told.",
                    why=f"The kernel gives no turn: {error.strerror}.",
                    fix="Let the agent bind UNIX sockets, and have enough descriptors.",
                ) from error
            for _ in range(2):
                if is_taken(name, owner=owner):
                    raise taken from error
                time.sleep(_STARTS_SECONDS)

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()


def is_taken(name: str, *, owner: int | None = None) -> bool:
    """Whether somebody who counts has that turn now; it is looked up, not taken for a moment."""
    holder = _holder(name)
    return holder is not None and holder in {0, os.geteuid(), owner}


def _bound(name: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(f"\0{name}")
        made.listen(_WAITING)
    except OSError:
        made.close()
        raise
    return made


def _holder(name: str) -> int | None:
    """The user who listens on *name*; None where nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
        probe.settimeout(0)
        probe.connect(f"\0{name}")
        told = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(told)[1])
    return None
