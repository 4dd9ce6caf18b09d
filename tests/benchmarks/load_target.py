"""The fast target among the shared tools, which stamps every request when it arrives."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.shared_tools import needs
from tests.ports import free_port
from tests.waiting import until


@dataclass(frozen=True)
class Run:
    """What one client's run cost and when its requests arrived, in seconds since 1970."""

    cpu_seconds: float
    arrivals: Mapping[str, float]

    def late_ms(self, dues: Mapping[str, float]) -> list[float]:
        """How late each arrived, in order; the start is what suits the client best."""
        late = {rid: at - dues[rid] for rid, at in self.arrivals.items()}
        start = min(late.values())
        return sorted(1000 * (one - start) for one in late.values())

    @property
    def span_seconds(self) -> float:
        return max(self.arrivals.values()) - min(self.arrivals.values())


@dataclass(frozen=True)
class LoadTarget:
    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
        """*command* as a process of its own, with all that it starts."""
        self._get("/__reset")
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        lines = (line.split() for line in self._get("/__log").splitlines())
        arrivals = {rid: int(micros) / 1e6 for rid, micros in lines}
        return Run(used.ru_utime + used.ru_stime, arrivals)

    def client(self, which: str, count: int, per_second: float, speed: float = 1) -> Run:
        """A run of ``replay_clients``."""
        words = [which, self.base_url, str(count), str(per_second), str(speed)]
        return self.run([sys.executable, "-m", "tests.benchmarks.replay_clients", *words])

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.base_url}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
            return text


@contextmanager
def load_target(folder: Path, *, ttft_ms: int = 100, itl_ms: int = 10) -> Iterator[LoadTarget]:
    """Compiled into *folder*; answers with 16 tokens."""
    source, compiler = needs("tools", "load-target", "target.c"), shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc to compile the target with")
    program, port = folder / "target", free_port()
    subprocess.run([compiler, "-O2", "-w", "-o", str(program), str(source)], check=True)
    command = [str(program), str(port), "16", str(ttft_ms), str(itl_ms)]
    with subprocess.Popen(command) as process:
        target = LoadTarget(port)
        try:
            until(lambda: _listens(target))
            yield target
        finally:
            process.kill()


def _listens(target: LoadTarget) -> bool:
    time.sleep(0.05)
    try:
        with urllib.request.urlopen(f"{target.base_url}/health", timeout=5):
            return True
    except OSError:
        return False
