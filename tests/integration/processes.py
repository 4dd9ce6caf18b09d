"""Worker processes that a test starts, kills and starts again."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A program of ``tests.programs``, its standard output to be read line by line."""
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.programs.{program}", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def start_worker(folder: Path, database_url: str | None = None) -> subprocess.Popen[str]:
    """A worker that is ready for work."""
    worker = start("worker", str(folder), *([database_url] if database_url else []))
    assert worker.stdout is not None
    line = worker.stdout.readline()
    assert line.startswith("ready"), line
    return worker


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9, without a moment to tidy up."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()


@contextmanager
def working(folder: Path, database_url: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """A worker for a while; it stops in order, if it is still there."""
    worker = start_worker(folder, database_url)
    try:
        yield worker
    finally:
        if worker.poll() is None:
            worker.communicate(timeout=60)
        kill(worker)
