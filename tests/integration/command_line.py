"""Calling ``incident-console`` as a user does: in this process, or as one of its own."""

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from app.cli import main

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Answer:
    """How a call ended, named as ``subprocess`` names it."""

    returncode: int
    stdout: str
    stderr: str


def run(data_dir: Path, *arguments: str, stdin: str = "") -> Answer:
    """One call in this process: the same code from the arguments to the exit status."""
    out, err, status = StringIO(), StringIO(), 0
    before, sys.stdin = sys.stdin, StringIO(stdin)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main([*arguments, "--data-dir", str(data_dir)])
    except SystemExit as ended:
        status = int(ended.code or 0)
    finally:
        sys.stdin = before
    return Answer(status, out.getvalue(), err.getvalue())


def run_as_process(data_dir: Path, *arguments: str, stdin: str = "") -> Answer:
    """One call as a process of its own: slower, and what really happens."""
    done = subprocess.run(
        [sys.executable, "-m", "app", *arguments, "--data-dir", str(data_dir)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=stdin,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)
