"""``incident-console coredump trigger``: asked for by a person, waited for, told honestly."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.agent.coredump.endings import Limits
from tests.integration.coredump_target import ROOT, Target, target
from tests.waiting import until

pytestmark = pytest.mark.slow


def call(fake: Target, state: Path, *arguments: str, typed: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        command(fake, state, *arguments),
        cwd=ROOT,
        input=typed,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def command(fake: Target, state: Path, *arguments: str) -> list[str]:
    named = ["--pid", str(fake.pid), "--state-dir", str(state)]
    return [sys.executable, "-m", "app", "coredump", "trigger", *named, *arguments]


@pytest.fixture(autouse=True)
def room(tmp_path: Path) -> None:
    free_bytes = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    if free_bytes < Limits().min_free_bytes:
        pytest.skip("the command line keeps 10 GiB free, and this disk has less")


@pytest.mark.slow
def test_a_person_types_the_host_and_gets_the_path(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok") as fake:
        wrong = call(fake, tmp_path / "s", typed="another-host\n")
        done = call(fake, tmp_path / "s", typed=f"{socket.gethostname()}\n")

        assert (wrong[0], wrong[1]) == (1, "")
        assert "not the name of this host" in wrong[2]
        assert (done[0], Path(done[1].strip()).parent) == (0, fake.folder)
        assert "complete: Complete" in done[2]


@pytest.mark.slow
def test_yes_and_json_give_one_document_and_a_refusal_fails(tmp_path: Path) -> None:
    with target(tmp_path / "t", "no_reader") as fake:
        status, out, err = call(fake, tmp_path / "s", "--yes", "--json")

        assert (status, json.loads(out)["state"]) == (1, "refused")
        assert "Nobody reads the pipe" in err


@pytest.mark.slow
def test_a_process_of_no_server_is_named_as_such(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok", "--title", "nginx: worker") as fake:
        status, out, err = call(fake, tmp_path / "s", "--yes")

        assert (status, out) == (1, "")
        assert "no part of a server" in err


@pytest.mark.slow
def test_ctrl_c_ends_the_watching_and_the_next_call_takes_it_up(tmp_path: Path) -> None:
    with target(tmp_path / "t", "held") as fake:
        waiting = subprocess.Popen(
            command(fake, tmp_path / "s", "--yes"),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        fake.wait_for("dump")
        waiting.send_signal(signal.SIGINT)
        _, stopped = waiting.communicate(timeout=60)
        fake.let_end()
        status, _, again = call(fake, tmp_path / "s", "--yes")

        assert (waiting.returncode, "goes on writing" in stopped) == (1, True)
        assert "under way" in again
        assert (status, "asked for a coredump" in again) == (1, True)  # not a second one
        assert until(lambda: len(list(fake.folder.glob("core_*")))) == 1
        assert fake.untouched()
