"""Ports for servers that a test starts."""

import random
import socket

# Below the ports that systems give to outgoing connections: nobody gets one by chance.
_PORTS = range(20_000, 32_000)
_taken: list[socket.socket] = []


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on, for this run of tests alone."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """The first of so many free ports in a row.

    Each is kept from other test processes, which ask here as well, by holding the UDP port of
    the same number until this process ends.
    """
    while True:
        first = random.choice(_PORTS)
        held = [_held(first + one) for one in range(count)]
        if None not in held:
            _taken.extend(filter(None, held))
            return first
        for one in filter(None, held):
            one.close()


def _held(port: int) -> socket.socket | None:
    """What keeps *port* from others; None where somebody has it."""
    held = socket.socket(type=socket.SOCK_DGRAM)
    try:
        held.bind(("127.0.0.1", port))
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
    except OSError:
        held.close()
        return None
    return held
