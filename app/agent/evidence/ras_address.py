"""Where NCCL's RAS of a server listens: a port on loopback, held by a process of that server."""

from app.agent.processes.ports import Listeners
from app.agent.processes.proc import PROC, environment, mapped
from app.errors import Rejected, Unreachable
from app.protocol.messages import Server

DEFAULT_PORT = 28028
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0", "::", ""))  # noqa: S104  (read)


def ras_port(server: Server) -> int:
    """The port that NCCL_RAS_ADDR names where an environment can be read, else NCCL's default.

    Raises Rejected where it names another address than loopback.
    """
    for process in server.processes:
        if told := (environment(process.pid) or {}).get("NCCL_RAS_ADDR"):
            return _parsed(told)
    return DEFAULT_PORT


def check_listens(server: Server, port: int) -> None:
    """Raises Unreachable unless a process of *server* listens on *port*, or that cannot be told.

    A host has one such port: what answers there may be the NCCL of another job.
    """
    listeners = Listeners(PROC)
    listening = [listeners.of(process.pid) for process in server.processes]
    if not all(one.whole for one in listening) or any(port in one.ports for one in listening):
        return
    loaded = [mapped(process.pid, "libnccl") for process in server.processes]
    if None not in loaded and not any(loaded):
        raise Unreachable(
            f"NCCL RAS does not listen on port {port}: no process of this server has loaded NCCL.",
            fix="Nothing to do: only servers with several GPUs use NCCL.",
        )
    raise not_listening(port)


def not_listening(port: int) -> Unreachable:
    """What is said when no process of the server has the port."""
    return Unreachable(
        f"NCCL RAS does not listen on port {port}.",
        why="It needs NCCL 2.24 or later, and another job on this host may have the port.",
        fix="At the next start leave NCCL_RAS_ENABLE unset, and give each job its NCCL_RAS_ADDR.",
        command="export NCCL_RAS_ADDR=localhost:28029",
    )


def _parsed(told: str) -> int:
    host, _, port = told.rpartition(":")
    if host.strip("[]").lower() not in _LOOPBACK:
        # The environment is the server's: it must not choose whom this agent talks to.
        raise Rejected(
            "NCCL_RAS_ADDR names another address than loopback, which this agent does not ask.",
            fix="Start the server without NCCL_RAS_ADDR, or with localhost and a port.",
        )
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise Rejected("NCCL_RAS_ADDR has no port.", fix="Give it as localhost:28028.")
    return int(port)
