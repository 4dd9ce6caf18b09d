"""``serve`` as a process: what it prints, refuses, and how it stops."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.command_line import ROOT, run

pytestmark = pytest.mark.slow

READY_WITHIN_SECONDS = 60


@contextmanager
def serving(
    data_dir: Path, *options: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A console at any free port, and what it printed when it could be reached."""
    command = [sys.executable, "-m", "app", "serve", "--port", "0", "--data-dir", str(data_dir)]
    with subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, [process.stdout.readline()]
        finally:
            process.kill()


def _url(line: str) -> str:
    found = re.search(r"http://\S+", line)
    assert found is not None, line
    return found[0].rstrip("/")


def _stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What else it printed and what it logged, once it has stopped after being asked."""
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=60)


def _becomes_ready(browser: httpx.Client, url: str) -> bool:
    """Whether the worker was heard soon after the start: its heart beats in its own time."""
    for _ in range(READY_WITHIN_SECONDS * 10):
        if browser.get(f"{url}/readyz").status_code == 200:
            return True
        time.sleep(0.1)
    return False


def test_it_prints_its_url_and_a_link_that_makes_the_first_admin(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as (process, printed):
        assert process.stdout is not None
        url, link = _url(printed[0]), _url(process.stdout.readline())
        with httpx.Client(headers={"Origin": url}, trust_env=False) as browser:
            assert browser.get(f"{url}/healthz").json() == {"status": "ok"}
            made = browser.post(link, data={"name": "mira", "password": "a long password"})
            assert made.status_code == 303
            assert _becomes_ready(browser, url)
            assert browser.get(f"{url}/settings?secret=1").status_code == 200
        _, logged = _stop(process)

    assert (tmp_path / "data" / "console.sqlite").exists()
    events = [json.loads(line) for line in logged.splitlines()]
    [settings] = [event for event in events if event.get("route") == "/settings"]
    assert settings["status"] == 200
    assert settings["request_id"]
    assert link.rsplit("/", 1)[1] not in logged
    assert "a long password" not in logged
    assert "secret=1" not in logged


def test_with_a_user_there_is_no_link_any_more(tmp_path: Path) -> None:
    run(tmp_path, "user", "create", "mira", "--role", "admin")

    with serving(tmp_path, "--no-worker", "--no-agent") as (process, printed):
        url = _url(printed[0])
        assert httpx.get(f"{url}/readyz", trust_env=False).json()["worker"] == "none started"
        rest, _ = _stop(process)
    assert "setup" not in printed[0] + rest


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_it_does_not_listen_for_others_while_anybody_could_become_admin(
    tmp_path: Path, host: str
) -> None:
    answer = run(tmp_path, "serve", "--host", host, "--port", "0")

    assert answer.returncode == 1
    assert "There is no user yet" in answer.stderr
    assert "incident-console user create" in answer.stderr


def test_a_password_file_makes_the_first_admin_and_opens_other_hosts(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a password from a file\n")

    with serving(
        tmp_path / "data", "--no-worker", "--host", "0.0.0.0",
        INCIDENT_CONSOLE_FIRST_ADMIN_PASSWORD_FILE=str(file),
    ) as (process, printed):  # fmt: skip
        assert process.stdout is not None
        assert "Made the user admin" in process.stdout.readline()
        url = _url(printed[0]).replace("0.0.0.0", "127.0.0.1")
        form = {"name": "admin", "password": "a password from a file"}
        assert httpx.post(f"{url}/login", data=form, trust_env=False).status_code == 303


def test_a_port_that_is_taken_is_told_with_the_remedy(tmp_path: Path) -> None:
    run(tmp_path, "user", "create", "mira")
    with serving(tmp_path, "--no-worker") as (_, printed):
        port = _url(printed[0]).rsplit(":", 1)[1]
        answer = run(tmp_path, "serve", "--no-worker", "--port", port)

    assert answer.returncode == 1
    assert "cannot listen on" in answer.stderr
    assert "--port" in answer.stderr


def test_a_key_file_that_holds_no_key_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text("not a key")
    answer = run(tmp_path, "serve", "--no-worker", "--port", "0")

    assert answer.returncode == 1
    assert "does not hold a key of this console" in answer.stderr


@pytest.mark.parametrize(
    ("trusted", "believed"),
    [
        pytest.param("", False, id="nobody-is-named"),
        pytest.param("127.0.0.1", True, id="the-proxy-is-named"),
    ],
)
def test_forwarded_headers_count_only_from_proxies_that_are_named(
    tmp_path: Path, trusted: str, believed: bool
) -> None:
    run(tmp_path, "user", "create", "mira")
    with serving(
        tmp_path, "--no-worker", INCIDENT_CONSOLE_TRUSTED_PROXIES=trusted
    ) as (_, printed):  # fmt: skip
        headers = {"X-Forwarded-Proto": "https"}
        answer = httpx.get(f"{_url(printed[0])}/healthz", headers=headers, trust_env=False)

    assert ("strict-transport-security" in answer.headers) is believed


def test_an_unknown_setting_is_told_with_the_nearest_known_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCIDENT_CONSOLE_TRUSTED_HOST", "example.org")

    answer = run(tmp_path, "serve", "--port", "0")

    assert answer.returncode == 1
    assert "Did you mean INCIDENT_CONSOLE_TRUSTED_HOSTS?" in answer.stderr
