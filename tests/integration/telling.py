"""A server that tells something of itself (tests/programs/telling), found as the agent finds it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.agent.kept.files import AgentFiles
from app.agent.processes.table import ProcessTable
from app.protocol.messages import Server
from tests.waiting import until

PROGRAMS = Path(__file__).parents[1] / "programs" / "telling"


@dataclass(frozen=True)
class Told:
    """A running server and what looks at it."""

    root: subprocess.Popen[bytes]
    table: ProcessTable

    @property
    def server(self) -> Server:
        found = [one for one in self.table.processes().servers if self._is_ours(one)]
        assert found, "the server is not found"
        return found[0]

    def _is_ours(self, server: Server) -> bool:
        return self.root.pid in [one.pid for one in server.processes]


@contextmanager
def telling(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    under: Sequence[str] = (),
    output: IO[bytes] | int | None = None,
    user: int | None = None,
) -> Iterator[Told]:
    """The server, once all that it was asked for is open and the agent finds it.

    At the end all of it is killed.
    """
    heard, ready = os.pipe()
    root = subprocess.Popen(
        [*under, sys.executable, "-m", "sglang.launch_server", *arguments],
        env=_environment(ready) | {**(environment or {})},
        stdout=output if output is not None else subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        pass_fds=[ready],
        start_new_session=True,
        user=user,
    )
    os.close(ready)
    told = Told(root, ProcessTable())
    try:
        with open(heard, "rb", buffering=0) as pipe:  # noqa: PTH123  (a descriptor)
            assert pipe.read(5) == b"ready", "it ended before it was ready"
        until(lambda: _found(told))
        yield told
    finally:
        with suppress(ProcessLookupError):
            os.killpg(root.pid, signal.SIGKILL)
        root.wait(10)


def _environment(ready: int) -> dict[str, str]:
    """*ready* is the descriptor that it says so to."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROGRAMS), "READY": str(ready)}


def _found(told: Told) -> bool:
    return any(
        told.root.pid in [one.pid for one in server.processes]
        for server in told.table.processes().servers
    )


def agent_files(folder: Path) -> AgentFiles:
    return AgentFiles.open(folder, quota_bytes=1 << 30)
