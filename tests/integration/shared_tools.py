"""The servers among the shared tools as subprocesses; a test is skipped where they are absent."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.waiting import until

SHARED = Path(__file__).parents[3] / "shared"


def needs(*parts: str) -> Path:
    """The shared file or folder of that name; skips the test where it is not there."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared/{'/'.join(parts)} is not beside this checkout")
    return path


@contextmanager
def tool(name: str, *arguments: str) -> Iterator[str]:
    """The base URL of the tool *name*, started on a free port with *arguments* after the port."""
    script, port = needs("tools", name), free_ports(2)  # the hostile server takes both
    command = [sys.executable, str(script), str(port), *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, f"{script} ended"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@contextmanager
def capture_server(scenario: str, *arguments: str) -> Iterator[str]:
    """The base URL of the captured *scenario*, served again."""
    folder = needs("captures", "http", scenario)
    with tool("serve_capture.py", str(folder), *arguments) as base_url:
        yield base_url


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
