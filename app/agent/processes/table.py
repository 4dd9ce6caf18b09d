"""The servers of this host and their processes, looked at when somebody asks."""

import os
import re
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from app.agent.processes import proc
from app.agent.processes.gpus import GpuReader
from app.agent.processes.servers import Found, Servers
from app.domain.redaction import keyed_fingerprint
from app.errors import NotFound
from app.protocol.messages import Process, Processes, Server, servers_cut

_FRESH_SECONDS = 0.5
_PROCESS_ID = re.compile(r"[1-9]\d{0,9}\.\d{1,20}", re.ASCII)
_Identity = tuple[str | None, str | None]
_LOOK_AGAIN = "Look at the processes of the host again, and choose from what runs now."


class ProcessTable:
    """Only what it has found may be acted on; nothing is read while nobody asks.

    A process is known by its pid, its start, its user and its program: where one of them is
    another than when it was shown, it is not found any more.
    """

    def __init__(self, root: Path = proc.PROC, gpus: GpuReader | None = None) -> None:
        self._root, self._gpus = root, gpus or GpuReader()
        self._lock = threading.Lock()
        self._finder = Servers(root, keyed_fingerprint(os.urandom(32)))
        self._found = Found([])
        self._shown: dict[str, _Identity] = {}  # by process id
        self._fresh_until = 0.0
        self._at = datetime.now(UTC)

    def processes(self) -> Processes:
        """Every server, at most half a second old; waits for the GPU driver, which has 3 s."""
        if not (self._root / "stat").exists():
            says = "absent: Linux only"
            return Processes(at=datetime.now(UTC), servers=[], gpus=says, supported=False)
        gpus = self._gpus.read()
        with self._lock:
            self._look()
            self._shown = {
                process.id: self._identity(process.pid)
                for server in self._found.servers
                for process in server.processes
            }
            return Processes(
                at=self._at,
                servers=self._found.servers,
                gpus=gpus.says,
                servers_left_out=self._found.left_out,
            )

    def find(self, process_id: str) -> Process:
        """The process in its state of now.

        Raises NotFound when it has ended, when its pid belongs to another meanwhile, or when it
        is no part of a server.
        """
        stat = self._still_there(process_id)
        server = self.server_of(process_id)
        process = next(p for p in server.processes if p.id == process_id)
        return process.model_copy(update={"state": stat.state})

    def server_of(self, process_id: str) -> Server:
        """The server that it belongs to; raises NotFound as ``find`` does."""
        self._still_there(process_id)
        with self._lock:
            self._look()
            server = self._known(process_id)
            if server is None:  # it may be younger than the last look
                self._fresh_until = 0.0
                self._look()
                server = self._known(process_id)
        if server is None:
            what = f"Process {proc.pid_of(process_id)} is no part of a server on this host"
            cut = servers_cut(self._found.left_out)
            raise NotFound(
                f"{what} that is told." if cut else f"{what}.",
                why=cut or "The agent acts on servers of SGLang and vLLM and their processes only.",
                fix=_LOOK_AGAIN,
            )
        return server

    def _known(self, process_id: str) -> Server | None:
        for server in self._found.servers:
            if any(process.id == process_id for process in server.processes):
                return server
        return None

    def _look(self) -> None:
        if time.monotonic() < self._fresh_until:
            return
        self._found = self._finder.look(self._gpus.last.uses)
        self._at = datetime.now(UTC)
        self._fresh_until = time.monotonic() + _FRESH_SECONDS

    def _identity(self, pid: int) -> _Identity:
        """Its program and its users: they outlive no exec and no change of user."""
        uids = proc.read_status(pid, self._root).get("Uid")
        return proc.executable(pid, self._root), uids

    def _still_there(self, process_id: str) -> proc.Stat:
        if not _PROCESS_ID.fullmatch(process_id):
            raise NotFound("No process has such an id.", fix=_LOOK_AGAIN)
        pid = proc.pid_of(process_id)
        stat = proc.read_stat(pid, self._root)
        if stat is None or (stat.id == process_id and stat.ended):
            raise NotFound(f"Process {pid} has ended.", fix=_LOOK_AGAIN)
        if stat.id != process_id:
            raise NotFound(
                f"Process {pid} was restarted: its pid belongs to another process now.",
                fix=_LOOK_AGAIN,
            )
        now = self._identity(pid)
        if self._shown.get(process_id, now) != now:
            raise NotFound(
                f"Process {pid} runs another program, or as another user, than when it was shown.",
                fix=_LOOK_AGAIN,
            )
        return stat
