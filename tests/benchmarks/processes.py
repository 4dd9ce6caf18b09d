"""A whole console as it runs in production, and what it costs while others look at it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from tests.integration.test_cli_bundle import CACHED

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Console:
    """A ``serve`` process, worker included."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """What all its threads have used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @contextmanager
    def page(self, path: str, cookie: str) -> Iterator[Callable[[], bytes]]:
        """Gets *path* again and again over one connection, signed in with *cookie*."""
        headers = {"Cookie": f"session={cookie}", "Sec-Fetch-Site": "same-origin"}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:

            def get() -> bytes:
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                body = answer.read()
                assert answer.status == 200, answer.status
                return body

            yield get


@contextmanager
def serving(data_dir: Path, *, cores: set[int] | None = None) -> Iterator[Console]:
    """A console at a free port, with bytecode cached, on *cores* alone where they are given."""
    command = [sys.executable, "-m", "app", "serve", "--port", "0", "--data-dir", str(data_dir)]
    if cores:
        command = ["taskset", "-c", ",".join(map(str, cores)), *command]
    with (data_dir / "serve.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **CACHED},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None
            yield Console(process.pid, int(found[1]))
        finally:
            process.terminate()
            process.wait(30)
