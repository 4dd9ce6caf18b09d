"""The TCP ports that a process listens on, in its own network namespace."""

from dataclasses import dataclass
from pathlib import Path

from app.agent.processes import proc

_TABLE_BYTES = 1024 * 1024
_LISTENS = b"0A"  # TCP_LISTEN
# Open files are read one by one. A server opens its port early, before those of its clients.
OF_A_PROCESS = 1024
OF_A_LOOK = 8192


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a process listens. Not *whole*: some of its open files were not read."""

    ports: frozenset[int] = frozenset()
    whole: bool = False


class Listeners:
    """One look: the tables of a namespace are read once, and so many open files in all."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tables: dict[str, dict[str, int]] = {}
        self._left = OF_A_LOOK

    def of(self, pid: int) -> Listening:
        """As far as its open files are for us to see, and there are not too many."""
        most = min(OF_A_PROCESS, self._left)
        links = proc.links(pid, self._root, most=most + 1) if most else None
        if links is None:
            return Listening()
        self._left -= min(most, len(links))
        sockets = {link for link in links.values() if link.startswith("socket:[")}
        table = self._table(pid)
        ports = frozenset(table[socket] for socket in sockets & table.keys())
        return Listening(ports, whole=len(links) <= most)

    def _table(self, pid: int) -> dict[str, int]:
        namespace = proc.namespace(pid, "net", self._root) or f"of {pid}"
        if namespace not in self._tables:
            self._tables[namespace] = {
                **self._listening(pid, "tcp"),
                **self._listening(pid, "tcp6"),
            }
        return self._tables[namespace]

    def _listening(self, pid: int, protocol: str) -> dict[str, int]:
        """Ports by socket. The kernel lists those that listen first: the rest is not read."""
        listening = {}
        for line in proc.lines(f"{self._root}/{pid}/net/{protocol}", _TABLE_BYTES):
            fields = line.split()
            if len(fields) < 10 or not fields[0].endswith(b":"):
                continue  # the heading
            if fields[3] != _LISTENS:
                break
            _, _, port = fields[1].rpartition(b":")
            listening[f"socket:[{fields[9].decode()}]"] = int(port, 16)
        return listening
