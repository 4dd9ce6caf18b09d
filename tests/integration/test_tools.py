"""Programs that the agent runs, whatever they do."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from app.agent.touching.holds import Holds
from app.agent.touching.tools import ENVIRONMENT, find_tool, run_tool
from app.agent.touching.turns import Turns
from app.errors import Conflict
from tests.waiting import BUSY, until


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def test_both_outputs_and_the_status_are_kept() -> None:
    run = run_tool(shell("echo out; echo err >&2; exit 3"), deadline_seconds=10)

    assert (run.out, run.err, run.status) == (b"out\n", b"err\n", 3)
    assert (run.timed_out, run.cut) == (False, False)


def test_a_tool_gets_a_clean_environment_and_nothing_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    monkeypatch.setenv("SECRET", "hunter2")
    run = run_tool(["/usr/bin/env"], deadline_seconds=10)

    assert set(run.out.decode().split()) == {
        f"{name}={value}" for name, value in ENVIRONMENT.items()
    }
    assert run_tool(["/bin/cat"], deadline_seconds=10).status == 0


def test_at_the_deadline_it_and_its_children_are_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {pid_file}; wait"
    run = run_tool(shell(script), deadline_seconds=2.0)

    assert run.timed_out
    assert run.status == -9
    assert run.seconds < 2.0 * BUSY
    child = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    until(lambda: not child.exists() or " Z " in child.read_text())


def test_a_child_that_stays_behind_holds_nobody_up() -> None:
    run = run_tool(shell("setsid sleep 600 & echo $!"), deadline_seconds=60)

    os.kill(int(run.out), signal.SIGKILL)
    assert (run.status, run.timed_out) == (0, False)
    assert run.seconds < 30


def test_more_output_than_fits_is_read_and_dropped() -> None:
    run = run_tool(
        shell("head -c 3000000 /dev/zero; echo end >&2"), deadline_seconds=20, max_bytes=9
    )

    assert (run.out, run.err, run.status) == (b"\0" * 9, b"end\n", 0)
    assert run.cut


def test_the_caller_can_break_it_off() -> None:
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    run = run_tool(["/bin/sleep", "1000"], deadline_seconds=60, cancel=cancel)

    assert (run.timed_out, run.status) == (True, -9)
    assert run.seconds < 30


@pytest.mark.parametrize(
    ("program", "status", "says"),
    [
        pytest.param("/nowhere/py-spy", 127, b"command not found", id="missing"),
        pytest.param("/etc/passwd", 126, b"cannot be run", id="not-executable"),
    ],
)
def test_what_cannot_be_started_is_an_answer_too(program: str, status: int, says: bytes) -> None:
    run = run_tool([program], deadline_seconds=10)

    assert run.status == status
    assert says in run.err


def test_a_tool_beside_the_interpreter_is_found_and_a_missing_one_is_not() -> None:
    assert find_tool("sh")
    assert find_tool("no-such-tool") is None


def test_one_tool_is_on_a_process_at_a_time() -> None:
    holds, pid = Holds(), os.getpid()
    with holds.hold(pid, "py-spy"):
        assert holds.holder(pid) == "py-spy"
        with pytest.raises(Conflict, match="py-spy is on this process already"):
            holds.hold(pid, "x").__enter__()
        with holds.hold(2**22 + pid, "py-spy"):  # larger than any pid: of this test alone
            pass
    assert holds.holder(pid) is None
    with holds.hold(pid, "coredump"):
        assert holds.holder(pid) == "coredump"


def test_who_is_slow_gives_his_turn_to_others_and_only_once() -> None:
    turns = Turns(1, patience_seconds=0.5)
    began = time.monotonic()
    slow_has_it, slow_done = threading.Event(), threading.Event()

    def slow() -> None:
        with turns.turn():
            slow_has_it.set()
            slow_done.wait(100)

    thread = threading.Thread(target=slow)
    thread.start()
    assert slow_has_it.wait(60)
    with turns.turn():
        assert time.monotonic() - began > 0.4
        slow_done.set()
        thread.join()
        assert not turns._free.acquire(blocking=False)
