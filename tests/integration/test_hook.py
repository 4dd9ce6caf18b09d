"""``incident-console agent hook``: what it saves, and that it never holds up a restart."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.agent.processes.proc import command_line, pids
from tests.integration.stuck import state, stopped
from tests.integration.telling import agent_files, telling
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

HANGS = """
import subprocess, sys, time
from app.agent.touching.bounded import run_bounded

def work(tell):
    tell("begun")
    {what}

print("in time" if run_bounded(work, print, seconds=3.0) else "cut off")
"""
LONG = str(100_000 + os.getpid())  # of this run of tests alone
IN_A_SESSION = f"subprocess.Popen(['sleep', '{LONG}'], start_new_session=True)"
WAYS = {
    "sleeps": "time.sleep(600)",
    "leaves a tool behind": f"{IN_A_SESSION}; time.sleep(600)",
    "ends and leaves a tool behind": IN_A_SESSION,
    "breaks": "1 / 0",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "ignores signals": "import signal; signal.signal(15, signal.SIG_IGN); time.sleep(600)",
    "floods": "[tell('x' * 1000) for _ in iter(int, 1)]",
}


def _bounded(what: str, **options: int) -> tuple[subprocess.CompletedProcess[str], float]:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HANGS.format(what=what)],
        stdout=options.get("stdout", subprocess.PIPE),
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    return done, time.monotonic() - began


def _sleeps() -> list[int]:
    return [pid for pid in pids() if LONG in command_line(pid)]


@pytest.mark.parametrize("way", WAYS)
def test_whatever_hangs_it_ends_in_time_with_status_0(way: str) -> None:
    done, seconds = _bounded(WAYS[way])
    assert done.returncode == 0, done.stdout
    assert seconds < 3.0 * BUSY  # it would take ten minutes
    assert "begun" in done.stdout
    until(lambda: not _sleeps())


def test_what_broke_it_is_told() -> None:
    done, _ = _bounded(WAYS["breaks"])
    assert "ZeroDivisionError" in done.stdout
    assert done.stdout.endswith("in time\n")


def test_even_an_output_that_nobody_reads_does_not_hold_it_up() -> None:
    reading, writing = os.pipe()
    try:
        done, seconds = _bounded(WAYS["floods"], stdout=writing)
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 0
    assert seconds < 3.0 * BUSY  # it would take ten minutes


def _hook(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    began = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "app", "agent", "hook", "--state-dir", str(folder)),
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done, time.monotonic() - began


def test_stacks_facts_and_log_are_saved_and_named(tmp_path: Path) -> None:
    with (
        (tmp_path / "log").open("wb") as output,
        telling(output=output) as told,
        stopped(told.root.pid),
    ):
        done, seconds = _hook(tmp_path / "state")
        assert state(told.root.pid) == "T"
    assert done.returncode == 0, done.stderr
    assert seconds < 100
    ours = [
        file
        for file in agent_files(tmp_path / "state" / "files").listing()
        if file.process_id is None or file.process_id.startswith(f"{told.root.pid}.")
    ]
    assert {"stacks", "log tail", "host facts"} <= {file.kind for file in ours}
    assert all(file.name in done.stdout for file in ours)


def test_without_a_server_the_host_is_still_told_and_the_restart_goes_on(tmp_path: Path) -> None:
    done, _ = _hook(tmp_path / "state")
    assert done.returncode == 0, done.stderr
    assert "host-facts.json" in done.stdout


def test_a_folder_that_cannot_be_written_to_costs_the_evidence_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done, _ = _hook(tmp_path / "file" / "state")
    assert done.returncode == 0
    assert "Nothing can be saved" in done.stdout


def test_a_disk_that_hangs_does_not_hold_up_the_restart(tmp_path: Path) -> None:
    """Opening a FIFO that nobody reads from waits as a dead disk does."""
    (tmp_path / "files").mkdir()
    os.mkfifo(tmp_path / "files" / "manifest.jsonl")
    done, seconds = _hook(tmp_path, "--deadline-seconds", "4")
    assert done.returncode == 0
    assert seconds < 4 * BUSY
    assert "Cut off at the limit of 4 s" in done.stdout
