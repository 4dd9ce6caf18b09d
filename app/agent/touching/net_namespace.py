"""Connections made inside the network namespace of another process.

A network namespace belongs to a thread in Linux, so a thread of its own goes there, opens the
socket and ends; nothing else of the agent ever leaves its namespace.
"""

import ctypes
import os
import socket
from concurrent.futures import ThreadPoolExecutor

from app.agent.processes.proc import PROC, namespace, own_namespace
from app.errors import Rejected

_CLONE_NEWNET = 0x40000000


def connect(pid: int, port: int, timeout_seconds: float) -> socket.socket:
    """A connection to *port* on the loopback of *pid*.

    Raises OSError, and Rejected where we have no right to go to its namespace.
    """
    if (theirs := namespace(pid, "net")) is None:
        raise Rejected(
            "Its network namespace cannot be read.",
            fix="Let the agent run as root or as the owner of the server.",
        )
    if theirs == own_namespace("net"):
        return socket.create_connection(("localhost", port), timeout_seconds)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(_connect_there, pid, port, timeout_seconds).result()


def _connect_there(pid: int, port: int, timeout_seconds: float) -> socket.socket:
    descriptor = os.open(PROC / str(pid) / "ns" / "net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(descriptor, pid, port)
    finally:
        os.close(descriptor)
    return socket.create_connection(("localhost", port), timeout_seconds)


def _enter(descriptor: int, pid: int, port: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise Rejected(
            "It is in another network namespace, and this agent may not go there.",
            why=os.strerror(ctypes.get_errno()) + ".",
            fix="Give the agent CAP_SYS_ADMIN, or run it in the pod of the server.",
            command=f"printf 'VERBOSE STATUS\\n' | nsenter -t {pid} -n nc localhost {port}",
        )
