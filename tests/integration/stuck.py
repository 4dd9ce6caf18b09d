"""Processes that are stuck in one known way, for as long as a test looks at them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from app.agent.processes.proc import read_stat, read_status
from tests.waiting import until

PROGRAMS = Path(__file__).parents[1] / "programs"
SYSTEM_PYTHON = "/usr/bin/python3"  # which other users may run as well


@contextmanager
def program(
    name: str,
    *arguments: str,
    python: str = sys.executable,
    under: Sequence[str] = (),
    user: int | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """``tests/programs/NAME.py``, ready, and gone afterwards with all that it started."""
    with TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*under, python, str(PROGRAMS / f"{name}.py"), *arguments],
            env={**os.environ, "TMPDIR": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            user=user,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=20)


@contextmanager
def stuck(how: str, *arguments: str, user: int | None = None) -> Iterator[int]:
    """The pid of a process that is stuck in this way."""
    python = sys.executable if user is None else SYSTEM_PYTHON
    with program("stuck", how, *arguments, python=python, user=user) as process:
        said_ready(process)
        yield process.pid


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """*pid* is stopped for a while, as an on-call engineer may have done."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")
    yield
    os.kill(pid, signal.SIGCONT)


def said_ready(process: subprocess.Popen[str]) -> str:
    """What follows "ready" in the first line of its output."""
    assert process.stdout is not None
    word, _, more = process.stdout.readline().strip().partition(" ")
    assert word == "ready", f"{process.args!r} did not start"
    return more


def state(pid: int) -> str | None:
    stat = read_stat(pid)
    return stat.state if stat else None


def tracer(pid: int) -> str | None:
    return read_status(pid).get("TracerPid")
