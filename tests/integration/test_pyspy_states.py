"""Real py-spy on real processes in every state that can be made here."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.agent.processes.named import NamedProcesses
from app.agent.processes.table import ProcessTable
from app.agent.stacks import pyspy
from app.agent.stacks.pyspy_calls import PLAIN_SECONDS
from app.agent.touching.tools import find_tool, run_tool
from app.protocol.messages import Process, Refusal
from tests.integration.stuck import PROGRAMS, program, said_ready, state, stopped, stuck, tracer
from tests.waiting import BUSY, until

NOBODY = 65534
FREEZER = Path("/sys/fs/cgroup/freezer")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="py-spy on processes: Linux only"),
    pytest.mark.skipif(find_tool("py-spy") is None, reason="py-spy is not installed"),
]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def process(pid: int) -> Process:
    [found] = NamedProcesses([pid], ProcessTable()).processes
    return found


def read(pid: int, wanted: Any = "plain") -> pyspy.Reading:
    answer = pyspy.read(process(pid), wanted)
    assert isinstance(answer, pyspy.Reading), answer
    return answer


def refused(pid: int, wanted: Any = "plain") -> Refusal:
    answer = pyspy.read(process(pid), wanted)
    assert isinstance(answer, Refusal), answer
    return answer


def calls(reading: pyspy.Reading) -> set[str]:
    return {frame["name"] for thread in orjson.loads(reading.json) for frame in thread["frames"]}


def libraries(reading: pyspy.Reading) -> set[str]:
    frames = [frame for thread in orjson.loads(reading.json) for frame in thread["frames"]]
    return {frame["module"] for frame in frames if frame["module"]}


@pytest.mark.parametrize(
    ("how", "call", "states"),
    [
        pytest.param("busy", "busy_loop", "R", id="busy"),
        pytest.param("lock", "waits_for_a_lock", "S", id="waiting-for-a-lock"),
    ],
)
@pytest.mark.parametrize("wanted", ["plain", "native"])
def test_a_running_process_is_paused_and_read(
    how: str, call: str, states: str, wanted: str
) -> None:
    with stuck(how) as pid:
        until(lambda: state(pid) == states)
        reading = read(pid, wanted)

        assert (reading.mode, reading.exact, reading.notes) == (wanted, True, ())
        assert call in calls(reading)
        assert bool(libraries(reading)) is (wanted == "native")
        until(lambda: (state(pid), tracer(pid)) == (states, "0"))


@pytest.mark.parametrize("wanted", ["plain", "native"])
def test_a_stopped_process_is_read_without_a_pause_and_stays_stopped(wanted: str) -> None:
    with stuck("busy") as pid, stopped(pid):
        reading = read(pid, wanted)

        assert (reading.mode, reading.exact) == ("nonblocking", True)
        assert (reading.state_before, reading.state_after) == ("T", "T")
        assert "busy_loop" in calls(reading)
        assert bool(reading.notes) is (wanted == "native")
        assert state(pid) == "T"


def test_a_process_asleep_in_the_kernel_is_read_without_a_pause() -> None:
    with stuck("asleep") as pid:
        until(lambda: state(pid) == "D")
        began = time.monotonic()
        reading = read(pid)

        assert (reading.mode, reading.exact) == ("nonblocking", True)
        assert "asleep_in_the_kernel" in calls(reading)
        assert state(pid) == "D"
        assert time.monotonic() - began < PLAIN_SECONDS, "it was not waited for"


def test_what_runs_beside_a_sleeping_thread_is_marked_as_possibly_torn() -> None:
    with stuck("half-asleep") as pid:
        until(lambda: state(pid) == "D")
        reading = read(pid)

        assert (reading.mode, reading.exact) == ("nonblocking", False)


def test_a_blocking_read_of_a_sleeping_process_ends_at_its_deadline_and_does_no_harm() -> None:
    pyspy_path = find_tool("py-spy")
    assert pyspy_path
    with stuck("asleep") as pid:
        until(lambda: state(pid) == "D")
        run = run_tool([pyspy_path, "dump", "--pid", str(pid)], deadline_seconds=0.7)

        assert run.timed_out
        assert run.seconds < 0.7 * BUSY
        assert (state(pid), tracer(pid)) == ("D", "0")


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    group = FREEZER / f"incident-console-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
    except OSError as error:
        pytest.skip(f"no cgroup freezer of version 1 to write to: {error.strerror}")
    try:
        until(lambda: (group / "freezer.state").read_text() == "FROZEN\n")
        yield
    finally:
        (group / "freezer.state").write_text("THAWED")
        (FREEZER / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def test_a_frozen_process_is_read_without_a_pause_and_stays_frozen() -> None:
    with stuck("busy") as pid, frozen(pid):
        reading = read(pid, "native")

        assert (reading.mode, reading.exact) == ("nonblocking", True)
        assert reading.notes == ("Without native calls: it is frozen by its cgroup.",)
        assert "busy_loop" in calls(reading)


def test_a_process_that_another_debugger_is_on_is_read_without_a_pause() -> None:
    with stuck("busy") as pid, program("tracer", str(pid)) as other:
        said_ready(other)
        reading = read(pid)

        assert (reading.mode, reading.exact) == ("nonblocking", False)
        assert tracer(pid) == str(other.pid)


def test_four_py_spies_at_once_leave_a_process_as_it_was() -> None:
    with stuck("busy") as pid, ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(pyspy.read, process(pid), "native") for _ in range(4)]
        answers = [one.result(timeout=60) for one in asked]

        assert any(isinstance(answer, pyspy.Reading) for answer in answers)
        refusals = [answer for answer in answers if isinstance(answer, Refusal)]
        assert {refusal.kind for refusal in refusals} <= {"target_stopped_or_traced"}
        until(lambda: (state(pid), tracer(pid)) == ("R", "0"))


def test_a_zombie_is_called_one() -> None:
    with program("stuck", "zombie") as parent:
        refusal = refused(int(said_ready(parent)))

        assert refusal.kind == "process_gone_or_zombie"
        assert "zombie" in refusal.reason


def test_a_pid_that_was_given_to_another_process_is_left_alone() -> None:
    with stuck("lock") as pid:
        earlier = process(pid).model_copy(update={"id": f"{pid}.1"})
        refusal = pyspy.read(earlier, "plain")

        assert isinstance(refusal, Refusal)
        assert "belongs to another" in refusal.reason


@as_root
def test_a_process_of_another_user_is_read_by_root() -> None:
    with stuck("lock", user=NOBODY) as pid:
        reading = read(pid)

        assert (reading.mode, reading.exact) == ("plain", True)
        assert "waits_for_a_lock" in calls(reading)


@as_root
def test_without_the_right_to_trace_it_says_which_right_is_missing() -> None:
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    with stuck("lock") as pid:
        script = (
            "from app.agent.stacks import pyspy; "
            "from app.agent.processes.named import NamedProcesses; "
            "from app.agent.processes.table import ProcessTable; "
            f"print(pyspy.read(NamedProcesses([{pid}], ProcessTable()).processes[0], 'plain')"
            ".model_dump_json())"
        )
        done = subprocess.run(
            [*without, sys.executable, "-c", script],
            cwd=PROGRAMS.parents[1],
            capture_output=True,
            timeout=60,
            check=True,
        )
        refusal = Refusal.model_validate_json(done.stdout)

        assert refusal.kind == "permission"
        assert "CAP_SYS_PTRACE" in (refusal.fix or "")
        until(lambda: state(pid) == "S")


@pytest.mark.parametrize("wanted", ["plain", "native"])
def test_two_hundred_threads_are_all_read(wanted: str) -> None:
    with stuck("threads", "200") as pid:
        reading = read(pid, wanted)

        assert (reading.threads, reading.mode) == (201, wanted)
        until(lambda: (state(pid), tracer(pid)) == ("S", "0"))


def test_too_deep_a_stack_is_told_in_words_that_help() -> None:
    with stuck("deep", "5000") as pid:
        refusal = refused(pid)

        assert refusal.kind == "not_python_or_unsupported"
        assert "4096 calls deep" in refusal.reason
        until(lambda: (state(pid), tracer(pid)) == ("S", "0"))


def test_what_is_not_python_is_told_so() -> None:
    sleeping = subprocess.Popen(["sleep", "1000"])
    try:
        until(lambda: process(sleeping.pid).title.startswith("sleep"))
        assert refused(sleeping.pid).kind == "not_python_or_unsupported"
    finally:
        sleeping.kill()
        sleeping.wait()


@contextmanager
def in_namespaces_of_its_own() -> Iterator[int]:
    """The pid, as seen from here, of a busy process with other pids and mounts."""
    unshare = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces may not be unshared here")
    with program("stuck", "busy", under=unshare) as outer:
        said_ready(outer)
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text()
        yield int(children)


def test_a_process_in_namespaces_of_its_own_is_read() -> None:
    with in_namespaces_of_its_own() as pid:
        assert process(pid).own_pid_namespace
        reading = read(pid)

        assert (reading.mode, reading.exact) == ("plain", True)
        assert "busy_loop" in calls(reading)


@as_root
def test_its_native_stacks_are_read_from_inside_its_namespace() -> None:
    with in_namespaces_of_its_own() as pid:
        reading = read(pid, "native")

        assert (reading.mode, reading.notes) == ("native in its namespace", ())
        assert "busy_loop" in calls(reading)
        assert libraries(reading)
        until(lambda: (state(pid), tracer(pid)) == ("R", "0"))


def test_where_native_stacks_are_refused_plain_ones_are_taken_and_it_is_said() -> None:
    with in_namespaces_of_its_own() as pid:
        unknown = process(pid).model_copy(update={"own_pid_namespace": None})
        reading = pyspy.read(unknown, "native")

        assert isinstance(reading, pyspy.Reading)
        assert reading.mode == "plain"
        assert "busy_loop" in calls(reading)
        [note] = reading.notes
        assert note.startswith("Taken plain; native was refused: ")


@contextmanager
def once_paused(pid: int, act: Callable[[], object], *, seconds: float = 0.0) -> Iterator[None]:
    """*act* happens while py-spy is on *pid*, so long after it came."""

    def wait_and_act() -> None:
        until(lambda: tracer(pid) != "0")
        time.sleep(seconds)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_process_killed_while_it_is_read_is_told_as_gone() -> None:
    with stuck("threads", "200") as pid:
        found = process(pid)
        with once_paused(pid, lambda: os.kill(pid, signal.SIGKILL)):
            answer = pyspy.read(found, "native")

        if isinstance(answer, pyspy.Reading):  # py-spy makes do with what it had read
            assert (answer.exact, answer.notes) == (False, (pyspy.ENDED_SINCE,))
        else:
            assert answer.kind == "process_gone_or_zombie"


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05])
def test_a_reading_that_is_broken_off_never_leaves_a_process_stopped(seconds: float) -> None:
    cancel = threading.Event()
    with stuck("threads", "200") as pid:
        found = process(pid)
        with once_paused(pid, cancel.set, seconds=seconds):
            answer = pyspy.read(found, "native", cancel=cancel)

        assert isinstance(answer, pyspy.Reading) or answer.kind == "cancelled"
        until(lambda: (state(pid), tracer(pid)) == ("S", "0"))


def test_a_process_found_stopped_afterwards_is_said_loudly() -> None:
    with stuck("threads", "200") as pid:
        found = process(pid)
        with once_paused(pid, lambda: os.kill(pid, signal.SIGSTOP)):
            answer = pyspy.read(found, "native")

        told = answer.notes[0] if isinstance(answer, pyspy.Reading) else answer.reason
        assert told.startswith("ATTENTION")
        assert f"kill -CONT {pid}" in told
        assert state(pid) == "T"  # only a person lets it run on
