"""A fake CUDA process, and coredumps of it with short waits."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from app.agent.coredump.coredumps import Coredumps
from app.agent.coredump.endings import Limits
from app.agent.kept.files import AgentFiles
from app.agent.processes import proc
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.protocol.messages import Coredump, CoredumpRequest
from tests.waiting import until

ROOT = Path(__file__).parents[2]
HOST = "gpu-a-01"
CONTAINER = ["unshare", "--fork", "--pid", "--mount", "--uts", "--mount-proc", "--kill-child"]
FINAL = {"complete", "truncated", "no-file", "timed-out", "refused"}
QUICK = Limits(
    min_free_bytes=1,
    poll_seconds=0.02,
    retry_seconds=1.0,
    no_file_seconds=3.0,
    settle_seconds=0.5,
    stalled_seconds=3.0,
)


@dataclass
class Target:
    """A running fake; *folder* is its working folder."""

    process: subprocess.Popen[str]
    folder: Path
    pid: int = 0

    def __post_init__(self) -> None:
        self.pid = self.process.pid

    @property
    def id(self) -> str:
        found = proc.process_id(self.pid)
        assert found is not None
        return found

    @property
    def pipe(self) -> Path:
        return self.folder / f"corepipe.cuda.{os.uname().nodename}.{self.pid}"

    def wait_for(self, said: str) -> str:
        """The line of it that starts so; what it says before is passed over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(said):
                return line.strip()
        raise AssertionError(f"it ended without {said!r}")

    def let_end(self) -> None:
        """A dump that is "held" is written to its end."""
        (self.folder / "go").touch()

    def untouched(self) -> bool:
        """It runs, nobody traces it, and it still reads its pipe."""
        stat, status = proc.read_stat(self.pid), proc.read_status(self.pid)
        reads = str(self.pipe) in (proc.links(self.pid) or {}).values()
        return stat is not None and stat.state in "SR" and status["TracerPid"] == "0" and reads


def needs_namespaces() -> None:
    """Skips the test where no process with namespaces of its own can be started."""
    if subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces of our own can be made here")


@contextmanager
def target(
    folder: Path,
    variant: str,
    *arguments: str,
    inside: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Target]:
    """A fake of that variant, started and ready in *folder*; *inside*: as in a container.

    There its folder is on a tmpfs with these options that nobody else sees.
    """
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.programs.fake_cuda", variant, *arguments]
    if inside:
        private = f'mount -t tmpfs -o {inside} none "$0" && cd "$0" && exec "$@"'
        command = [*CONTAINER, "sh", "-c", private, str(folder), *command]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        found = Target(process, folder)
        found.wait_for("ready")
        if inside:  # unshare is its parent
            [child] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            found.pid = int(child)
        yield found
    finally:
        process.kill()
        process.communicate()


@dataclass
class Agent:
    """The coredump part of an agent on a folder of its own."""

    folder: Path
    limits: Limits = QUICK
    holds: Holds = field(default_factory=Holds)
    lock: str = field(default_factory=lambda: f"test-{secrets.token_hex(8)}")

    def __post_init__(self) -> None:
        self.files = AgentFiles.open(self.folder / "files", quota_bytes=10**9)
        self.coredumps = Coredumps(
            table=ProcessTable(),
            holds=self.holds,
            files=self.files,
            folder=self.folder / "coredumps",
            host=HOST,
            limits=replace(self.limits, host_lock=self.lock),
        )

    def trigger(self, process_id: str, *, confirm: str = HOST) -> Coredump:
        return self.coredumps.trigger(CoredumpRequest(process_id=process_id, confirm=confirm))

    def ending(self, coredump: Coredump) -> Coredump:
        """The coredump once it is final."""

        def final() -> Coredump | None:
            now = self.coredumps.get(coredump.id)
            return now if now.state in FINAL else None

        found = until(final)
        assert found is not None
        return found

    def until_state(self, coredump: Coredump, state: str) -> Coredump:
        until(lambda: self.coredumps.get(coredump.id).state == state)
        return self.coredumps.get(coredump.id)


@contextmanager
def agent(folder: Path, **given: object) -> Iterator[Agent]:
    found = Agent(folder, **given)  # type: ignore[arg-type]
    try:
        yield found
    finally:
        found.coredumps.close()
