"""The TCP ports that a process listens on, in its own network namespace."""

from pathlib import Path

from app.agent.processes import proc

_TABLE_BYTES = 1024 * 1024
_LISTENS = b"0A"  # TCP_LISTEN


class Listeners:
    """One look: the tables of a namespace are read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tables: dict[str, dict[str, int]] = {}

    def ports(self, pid: int) -> set[int] | None:
        """Where *pid* listens; None when its open files are not for us to see."""
        links = proc.links(pid, self._root)
        if links is None:
            return None
        sockets = {link for link in links.values() if link.startswith("socket:[")}
        table = self._table(pid)
        return {table[socket] for socket in sockets & table.keys()}

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
