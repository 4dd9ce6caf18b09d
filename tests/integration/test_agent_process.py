"""The agent as a process: it starts, says how to register it, and outlives what happens to it."""

import os
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from app.protocol.signing import Signed
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
START_SECONDS = 60


@dataclass
class Running:
    """An agent that listens."""

    process: subprocess.Popen[str]
    says: str
    url: str
    state_dir: Path

    def request(self, target: str, **changes: str) -> httpx.Request:
        agent_id = (self.state_dir / "agent-id").read_text().strip()
        key = bytes.fromhex((self.state_dir / "key").read_text())
        signed = Signed(agent_id, int(time.time()), secrets.token_hex(16))
        headers = signed.headers(key, "GET", target, b"")
        return httpx.Request("GET", self.url + target, headers=headers)


def _command(state_dir: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "app", "agent", *arguments, "--state-dir", str(state_dir)]


@contextmanager
def running(state_dir: Path, *arguments: str) -> Iterator[Running]:
    process = subprocess.Popen(
        _command(state_dir, "--port", "0", *arguments),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        try:
            assert process.stdout is not None
            says = ""
            while "fingerprint" not in says:
                line = process.stdout.readline()
                assert line, says
                says += line
            [url] = re.findall(r"^  URL +(\S+)$", says, re.MULTILINE)
            yield Running(process, says, url, state_dir)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _send(request: httpx.Request, *, verify: bool = True) -> httpx.Response:
    with httpx.Client(trust_env=False, verify=verify) as client:
        return client.send(request)


def _run(state_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(state_dir, *arguments),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )


def test_a_first_start_makes_what_it_needs_and_tells_how_to_register(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with running(folder) as agent:
        answer = _send(agent.request("/agent/v1/info"))
        key = _run(folder, "key").stdout.strip()

    assert answer.json()["system"].startswith("Linux")
    assert answer.json()["tools"]["py-spy"]
    assert key == (folder / "key").read_text().strip()
    assert key not in agent.says
    assert f"incident-console agent key --state-dir {folder}" in agent.says
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert agent.process.returncode == -signal.SIGTERM


def test_a_second_agent_on_the_same_folder_does_not_start(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with running(folder) as agent:
        second = _run(folder, "--port", "0")
        assert _send(agent.request("/agent/v1/info")).status_code == 200

    assert second.returncode == 1
    assert "Another agent runs on" in second.stderr


def test_after_a_kill_it_starts_again_and_no_request_is_taken_twice(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with running(folder) as agent:
        request = agent.request("/agent/v1/info")
        assert _send(request).status_code == 200
        agent.process.kill()
        agent.process.wait(10)

    with running(folder) as agent:
        request.url = httpx.URL(agent.url + "/agent/v1/info")
        request.headers["host"] = request.url.netloc.decode()
        again = _send(request)
        fresh = _send(agent.request("/agent/v1/info"))

    assert (again.status_code, again.json()["error"]) == (401, "replayed")
    assert fresh.status_code == 200


def test_off_loopback_it_speaks_tls_with_a_certificate_that_stays(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    for _ in range(2):
        with running(folder, "--host", "0.0.0.0") as agent:
            port = int(agent.url.rpartition(":")[2])
            pem = ssl.get_server_certificate(("127.0.0.1", port))
            [told] = re.findall(r"fingerprint +([0-9a-f]{64})$", agent.says, re.MULTILINE)
            agent.url = f"https://127.0.0.1:{port}"
            answer = _send(agent.request("/agent/v1/info"), verify=False)
            assert answer.status_code == 200
            assert sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest() == told
            with pytest.raises(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/agent/v1/alive", trust_env=False)

    assert (folder / "tls-key.pem").stat().st_mode & 0o777 == 0o600


def test_without_openssl_it_names_the_way_out(tmp_path: Path) -> None:
    done = subprocess.run(
        _command(tmp_path / "state", "--port", "0", "--host", "0.0.0.0"),
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )

    assert done.returncode == 1
    assert "--tls-cert and --tls-key" in done.stderr


def test_a_key_that_everybody_may_read_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("0" * 64)
    (tmp_path / "key").chmod(0o644)
    done = _run(tmp_path / "state", "--port", "0", "--key-file", str(tmp_path / "key"))

    assert done.returncode == 1
    assert f"chmod 600 {tmp_path / 'key'}" in done.stderr


def test_on_another_system_it_says_so() -> None:
    elsewhere = (
        "import platform; platform.system = lambda: 'Darwin'\n"
        "from app.cli import main; main(['agent', '--port', '0'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", elsewhere], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (1, "absent: Linux only\n")


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    with running(tmp_path / "state") as agent:
        request = agent.request("/agent/v1/info")
        assert request.url.port is not None
        told = {**request.headers, "content-length": "100"}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        started = time.monotonic()
        with socket.create_connection(("127.0.0.1", request.url.port), timeout=100) as client:
            client.sendall(f"POST /agent/v1/stacks HTTP/1.1\r\n{head}\r\nx".encode())
            answer = client.recv(65_536)
            seconds = time.monotonic() - started

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert 9 < seconds < 10 * BUSY


def test_it_ends_when_it_is_told_to_while_a_connection_is_open(tmp_path: Path) -> None:
    with running(tmp_path / "state") as agent, httpx.Client(trust_env=False) as client:
        client.send(agent.request("/agent/v1/info"))
        agent.process.terminate()
        until(lambda: agent.process.poll() is not None)
