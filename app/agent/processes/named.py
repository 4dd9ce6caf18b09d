"""Processes that a person names by pid at this host's terminal, part of a server or not."""

import os
from collections.abc import Iterable
from pathlib import Path

from app.agent.processes.details import Details
from app.agent.processes.proc import PROC, command_line, read_stat
from app.agent.processes.table import ProcessTable
from app.domain.redaction import keyed_fingerprint
from app.domain.server_tree import Seen, Tree
from app.domain.titles import Title, read_title
from app.errors import NotFound
from app.protocol.messages import Process, Role


class NamedProcesses:
    """What the named *pids* are just now; *gone* are those without a process."""

    def __init__(self, pids: Iterable[int], table: ProcessTable, root: Path = PROC) -> None:
        servers = table.processes().servers
        known = {process.pid: process for server in servers for process in server.processes}
        found = {pid: known.get(pid) or _process(pid, root) for pid in dict.fromkeys(pids)}
        self.processes = [process for process in found.values() if process]
        self.gone = [pid for pid, process in found.items() if process is None]

    def find(self, process_id: str) -> Process:
        """Raises NotFound for what was not named."""
        for process in self.processes:
            if process.id == process_id:
                return process
        raise NotFound("This process was not named.")


def _process(pid: int, root: Path) -> Process | None:
    stat = read_stat(pid, root)
    if stat is None:
        return None
    arguments = command_line(pid, root)
    title = read_title(arguments)
    seen = Seen(pid, stat.parent_pid, arguments, title)
    tree = Tree(pid, title.engine if title else "sglang")  # a server of its own, so to speak
    details = Details(root, keyed_fingerprint(os.urandom(32)))
    return details.read(stat, seen, _role(title), tree, None)


def _role(title: Title | None) -> Role:
    if title is None:
        return "other"
    return "worker" if title.role == "engine core" else title.role
