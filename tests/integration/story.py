"""What whole stories are made of: a console with its worker, agents and servers as processes."""

import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.integration.played import ROOT, played
from tests.ports import free_port
from tests.waiting import until

API = "/api/v1"
HOST = socket.gethostname()
ESTABLISHED = "01"  # in /proc/net/tcp


@dataclass
class Agent:
    """An agent that listens on loopback."""

    process: subprocess.Popen[bytes]
    url: str
    state_dir: Path

    @property
    def key(self) -> str:
        return (self.state_dir / "key").read_text().strip()

    def did(self, what: str) -> list[dict[str, Any]]:
        """Its ledger's lines of one kind, what was asked and what came of it."""
        ledger = self.state_dir / "ledger.jsonl"
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        return [line for line in map(json.loads, lines) if line["what"] == what]

    def is_asked(self) -> bool:
        """Whether bytes of a request lie unread in a connection to it."""
        port = f":{int(self.url.rpartition(':')[2]):04X}"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state, queues, *_ = line.split()
            if local.endswith(port) and state == ESTABLISHED and int(queues[9:], 16):
                return True
        return False

    def kill(self) -> None:
        """kill -9, without a moment to tidy up."""
        self.process.kill()
        self.process.wait(10)


@contextmanager
def quick_agent(
    state_dir: Path, *, port: int = 0, free_bytes: int = 1, under: Sequence[str] = ()
) -> Iterator[Agent]:
    """``tests.programs.quick_agent`` with a turn of its own on this host."""
    port, lock = port or free_port(), f"test-{state_dir}"
    program = [sys.executable, "-m", "tests.programs.quick_agent"]
    command = [*under, *program, str(state_dir), str(port), lock, str(free_bytes)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        agent = Agent(process, f"http://127.0.0.1:{port}", state_dir)
        try:
            until(lambda: _listens(port))
            yield agent
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Dumping:
    """A played server whose schedulers dump their GPUs on demand."""

    root: subprocess.Popen[bytes]
    port: int
    folder: Path
    log: Path

    def said(self, word: str) -> list[str]:
        """Lines of its schedulers that start so: "ready", "received", "dump", "closed"."""
        return [line for line in self.log.read_text().splitlines() if line.startswith(word)]

    def let_end(self) -> None:
        """Dumps that are "held" are written to their end."""
        (self.folder / "go").touch()

    @property
    def dumps(self) -> list[Path]:
        return sorted(self.folder.glob("core_*"))


@contextmanager
def dumping(
    folder: Path, variant: str = "ok", *, ranks: int = 1, seconds: float = 0.2
) -> Iterator[Dumping]:
    """A server of so many ranks, all of one variant of ``tests.programs.fake_cuda``."""
    folder.mkdir()
    cuda = {"variant": variant, "size_bytes": 100_000, "seconds": seconds}
    schedulers = [{"title": f"sglang::scheduler_TP{n}", "cuda": cuda} for n in range(ranks)]
    port, log = free_port(), folder / "said"
    node = {"listens": port, "children": schedulers}
    with (
        log.open("wb") as says,
        played(node, "--port", str(port), folder=folder, says=says.fileno()) as root,
    ):
        server = Dumping(root, port, folder, log)
        until(lambda: len(server.said("ready")) == ranks)
        yield server


@dataclass(frozen=True)
class Console:
    """A console with a worker, as an admin uses its API and its pages."""

    client: httpx.Client

    def get(self, path: str) -> Any:
        answer = self.client.get(API + path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, sent: dict[str, Any] | None = None) -> Any:
        answer = self.client.post(API + path, json=sent)
        assert answer.status_code in (201, 202), answer.text
        return answer.json()

    def register(self, agent: Agent, name: str = HOST) -> int:
        """The number of the host; earlier ones of that name are removed."""
        for host in self.get("/hosts")["items"]:
            self.client.delete(f"{API}/hosts/{host['id']}")
        sent = {"name": name, "agent_url": agent.url, "key": agent.key}
        number: int = self.post("/hosts", sent)["id"]
        return number

    def server(self, host_id: int, port: int, ranks: int) -> dict[str, Any]:
        """The server on *port* as its host tells it, as soon as it is whole."""

        def whole() -> dict[str, Any] | None:
            for one in self.get(f"/hosts/{host_id}/processes")["servers"]:
                found = sum(process["role"] == "scheduler" for process in one["processes"])
                if one["ports"] == [port] and found == ranks:
                    server: dict[str, Any] = one
                    return server
            return None

        server = until(whole)
        assert server is not None
        return server

    def incident(self, host_id: int, server: Dumping, *, ranks: int = 1, url: str = "") -> int:
        """The number of an incident of a target that is linked with *server*."""
        found = self.server(host_id, server.port, ranks)
        linked = [{"host_id": host_id, "server_id": found["id"]}]
        url = url or f"http://127.0.0.1:{server.port}"
        sent = {"name": f"decode-{server.port}", "base_url": url, "servers": linked}
        target_id = self.post("/targets", sent)["id"]
        opened = {"title": "It hangs", "target_ids": [target_id]}
        number: int = self.post("/incidents", opened)["id"]
        return number

    def ask(self, incident_id: int, kind: str, **sent: Any) -> httpx.Response:
        url = f"{API}/incidents/{incident_id}/diagnostics"
        return self.client.post(url, json={"kind": kind, **sent})

    def press(self, incident_id: int, kind: str = "coredump", **sent: Any) -> int:
        """The number of a diagnostic that was asked for, confirmed with the host's name."""
        confirm = {"confirm": HOST} if kind == "coredump" else {}
        answer = self.ask(incident_id, kind, **{**confirm, **sent})
        assert answer.status_code == 202, answer.text
        number: int = answer.json()["diagnostic"]["id"]
        return number

    def type(self, incident_id: int, kind: str, confirm: str = "") -> httpx.Response:
        """The form of the incident's page, sent: for all ranks of its only server."""
        [target_id] = self.get(f"/incidents/{incident_id}")["target_ids"]
        form = {"kind": kind, "server": str(target_id), "confirm": confirm}
        return self.client.post(f"/incidents/{incident_id}/diagnostics", data=form)

    def diagnostic(self, number: int) -> dict[str, Any]:
        told: dict[str, Any] = self.get(f"/diagnostics/{number}")
        return told

    def states(self, number: int) -> list[str]:
        return [item["state"] for item in self.diagnostic(number)["items"]]

    def ended(self, number: int) -> dict[str, Any]:
        """The diagnostic as soon as it is over."""
        until(lambda: self.diagnostic(number)["finished_at"])
        return self.diagnostic(number)

    def artifacts(self, incident_id: int) -> list[dict[str, Any]]:
        kept: list[dict[str, Any]] = self.get(f"/incidents/{incident_id}/artifacts")["items"]
        return kept

    def downloaded_sha256(self, artifact_id: int) -> str:
        """The hash of the bytes that a browser gets."""
        answer = self.client.get(f"{API}/artifacts/{artifact_id}/content")
        assert answer.status_code == 200, answer.text
        return hashlib.sha256(answer.content).hexdigest()


def sha256_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
