"""The servers among the shared tools as subprocesses; a test is skipped where they are absent."""

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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
    script, port = needs("tools", name), _free_port()
    command = [sys.executable, str(script), str(port), *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
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


def _free_port() -> int:
    """A port that is free, as is the one above it: the hostile server takes both."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as first, socket.socket() as second:
            if first.connect_ex(("127.0.0.1", port)) and second.connect_ex(("127.0.0.1", port + 1)):
                return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"nothing listens on port {port}")
