"""All processes in the same moment, a few times: what is kept, and what is refused and why."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.agent.kept.files import AgentFiles
from app.agent.processes.named import NamedProcesses
from app.agent.processes.table import ProcessTable
from app.agent.stacks.take import LONGEST_WAIT_SECONDS, sample_name, take_stacks
from app.agent.touching.holds import Holds
from app.agent.touching.tools import find_tool
from app.domain.pyspy_json import thread_count
from app.protocol.messages import Process, Rank, StacksAnswer, StacksRequest
from tests.integration.stuck import program, said_ready, state, stopped, stuck
from tests.waiting import BUSY

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="py-spy on processes: Linux only"),
    pytest.mark.skipif(find_tool("py-spy") is None, reason="py-spy is not installed"),
]
QUOTA_BYTES = 1024**3


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    return AgentFiles.open(tmp_path / "files", quota_bytes=QUOTA_BYTES)


@contextmanager
def processes(*ways: str) -> Iterator[NamedProcesses]:
    with ExitStack() as stack:
        pids = [stack.enter_context(stuck(way)) for way in ways]
        yield NamedProcesses(pids, ProcessTable())


def take(
    named: NamedProcesses,
    files: AgentFiles,
    *,
    holds: Holds | None = None,
    cancel: threading.Event | None = None,
    **asked: Any,
) -> StacksAnswer:
    asked.setdefault("process_ids", [process.id for process in named.processes])
    request = StacksRequest(**asked)
    return take_stacks(request, table=named, holds=holds or Holds(), files=files, cancel=cancel)


def test_every_sample_of_every_process_is_kept(files: AgentFiles) -> None:
    with processes("busy", "lock") as named:
        answer = take(named, files, samples=2, interval_seconds=0.5, first_sample=3)

        ids = [process.id for process in named.processes]
        assert answer.matched == ids
        assert [(one.process_id, one.sample) for one in answer.done] == [
            (ids[0], 3),
            (ids[1], 3),
            (ids[0], 4),
            (ids[1], 4),
        ]
        assert answer.refused == []
        first, *_, last = answer.done
        assert (last.taken_at - first.taken_at).total_seconds() > 0.4
        opened, file = files.open_file(first.file.id)
        with opened:
            assert thread_count(opened.read(), pid=first.pid) == first.threads == 1
        assert (file.kind, file.process_id, file.tier) == ("stacks", ids[0], "T1")
        assert file.name == f"process-{first.pid}-3.pyspy.json"


def test_one_refused_process_does_not_cost_the_others_theirs(files: AgentFiles) -> None:
    with program("stuck", "zombie") as parent, processes("lock") as named:
        dead = NamedProcesses([int(said_ready(parent))], ProcessTable())
        named.processes += dead.processes
        answer = take(named, files, samples=2, interval_seconds=0.5)

        assert [one.sample for one in answer.done] == [1, 2]
        [refusal] = answer.refused
        assert (refusal.process_id, refusal.kind) == (
            dead.processes[0].id,
            "process_gone_or_zombie",
        )


def test_what_is_not_there_is_refused_by_name(files: AgentFiles) -> None:
    with processes("lock") as named:
        alive = named.processes[0]
        restarted = f"{alive.pid}.1"
        known = NamedProcesses([], ProcessTable())
        answer = take(known, files, process_ids=[alive.id, restarted, "4194303.7"])

        assert answer.matched == []
        assert [one.kind for one in answer.refused] == ["unknown process", "restarted", "gone"]


def test_a_process_that_another_tool_is_on_is_busy(files: AgentFiles) -> None:
    holds = Holds()
    with processes("lock", "busy") as named, holds.hold(named.processes[0].pid, "A coredump"):
        answer = take(named, files, holds=holds)

        [refusal] = answer.refused
        assert (refusal.process_id, refusal.kind) == (named.processes[0].id, "busy")
        assert refusal.reason == "A coredump is on this process already."
        assert [one.process_id for one in answer.done] == [named.processes[1].id]


def test_without_room_it_is_said_and_nothing_is_claimed(tmp_path: Path) -> None:
    full = AgentFiles.open(tmp_path / "full", quota_bytes=10)
    with processes("lock") as named:
        answer = take(named, full)

        assert answer.done == []
        assert [one.kind for one in answer.refused] == ["no-space"]


def test_it_waits_for_the_moment_agreed_on_and_never_long(files: AgentFiles) -> None:
    with processes("lock") as named:
        moment = datetime.now(UTC) + timedelta(seconds=0.6)
        answer = take(named, files, not_before=moment)
        assert answer.done[0].taken_at >= moment

        cancel = threading.Event()
        threading.Timer(0.2, cancel.set).start()
        began = time.monotonic()
        far = datetime.now(UTC) + timedelta(days=1)
        answer = take(named, files, not_before=far, cancel=cancel)
        assert time.monotonic() - began < LONGEST_WAIT_SECONDS
        assert [one.kind for one in answer.refused] == ["cancelled"]


def test_one_stopped_rank_delays_nobody(files: AgentFiles) -> None:
    with processes(*["busy"] * 4) as named, stopped(named.processes[0].pid):
        answer = take(named, files)

        assert [one.mode for one in answer.done] == ["nonblocking", "plain", "plain", "plain"]
        assert all(one.exact for one in answer.done)
        assert state(named.processes[0].pid) == "T"


@pytest.mark.slow
def test_the_first_sample_of_eight_ranks_is_taken_side_by_side(files: AgentFiles) -> None:
    with processes(*["lock"] * 8) as named:
        began = time.monotonic()
        answer = take(named, files)
        seconds = time.monotonic() - began

        assert len(answer.done) == 8
        moments = [one.taken_at for one in answer.done]
        spread = (max(moments) - min(moments)).total_seconds()
        assert seconds < 3 * BUSY, f"{seconds:.2f} s, the moments {spread:.2f} s apart"


def test_a_file_is_named_by_rank_pid_and_sample_and_by_nothing_that_leaves_the_folder() -> None:
    process = Process(id="7.1", pid=7, title="t", role="scheduler", rank=Rank(label="DP1_TP3"))

    assert sample_name(process, 2, "plain") == "DP1_TP3-7-2.pyspy.json"
    assert sample_name(process, 2, "native in its namespace") == "DP1_TP3-7-2.native.pyspy.json"
    hostile = process.model_copy(update={"rank": Rank(label="../../etc/\x1bx")})
    assert sample_name(hostile, 1, "plain") == ".._.._etc_x1bx-7-1.pyspy.json"
