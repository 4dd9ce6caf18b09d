import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.agent.coredump.gate import tracker_environments
from app.agent.kept.files import AgentFiles
from app.agent.processes.proc import command_line, process_id
from app.agent.processes.table import ProcessTable
from app.agent.readiness.preflight import preflight, score
from app.agent.readiness.preflight_coredump import coredump_check
from app.agent.readiness.preflight_host import free_space_check
from app.agent.readiness.preflight_nccl import environments, ras_check, recorder_check
from app.agent.readiness.preflight_server import log_check
from app.agent.readiness.preflight_stacks import stack_checks
from app.agent.readiness.rights import look_at_rights, may_trace, try_pyspy
from app.agent.readiness.server_facts import server_facts, sglang_version
from app.agent.touching.tools import find_tool
from app.cli import main
from app.errors import NotFound
from app.protocol.messages import Check, Preflight, Process, Server
from tests.integration.played import played
from tests.integration.stuck import PROGRAMS, SYSTEM_PYTHON, said_ready, stopped, stuck
from tests.ports import free_port
from tests.procfs import Made, make
from tests.waiting import until

ROOT = Path(__file__).parents[2]
NOBODY = 65534
TREE = {
    "children": [
        {"title": "sglang::scheduler_TP0"},
        {"title": "sglang::scheduler_TP1"},
        {"title": "sglang::detokenizer"},
    ]
}


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    return AgentFiles.open(tmp_path / "agent", quota_bytes=1024**3)


def process(pid: int, *, own_pid_namespace: bool = False) -> Process:
    return Process(
        id=process_id(pid) or f"{pid}.1",
        pid=pid,
        title="",
        role="scheduler",
        uid=0,
        own_pid_namespace=own_pid_namespace,
    )


def server(*processes: Process) -> Server:
    return Server(id=processes[0].id, engine="sglang", name="sglang", processes=list(processes))


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.capability: check for check in checks}


@contextmanager
def running(*command: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, *command],
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate(timeout=20)


@contextmanager
def reading(pipe: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that keeps *pipe* open for reading, as a driver does."""
    with running(str(PROGRAMS / "reads_pipe.py"), str(pipe), **environment) as child:
        said_ready(child)
        yield child


# A server -----------------------------------------------------------------------------------


def test_a_server_is_told_process_by_process_with_its_restart_card(files: AgentFiles) -> None:
    table = ProcessTable()
    with played(TREE, "--port", "1", "--tp", "2", "--crash-dump-folder", "/dumps") as root:
        ours = _whole(table, root.pid)
        found = preflight(table=table, files=files, process_ids=[p.id for p in ours.processes])

    said = {one.title.partition(",")[0]: by_name(one.checks) for one in found.processes}
    assert {"scheduler TP0", "scheduler TP1", "detokenizer"} <= set(said)
    assert said["scheduler TP0"]["stacks"].ready is True
    assert said["scheduler TP0"]["coredump"].ready is False
    assert said["scheduler TP1"]["nccl ras"] == said["scheduler TP0"]["nccl ras"]
    assert not {"coredump", "nccl ras"} & set(said["detokenizer"])
    assert "/dumps" in said["server"]["crash dump"].says
    [card] = found.restarts
    assert [loss.command for loss in card.losses][1] == f"kill -QUIT {root.pid}"
    assert any("/dumps" in line for line in card.losses[1].saves)
    assert found.score is not None
    assert 0 < found.score < 1


def test_what_is_not_ready_has_exactly_one_fix_and_what_is_ready_none(files: AgentFiles) -> None:
    table = ProcessTable()
    with played(TREE, "--port", "1", "--tp", "2") as root:
        ours = _whole(table, root.pid)
        found = preflight(table=table, files=files, process_ids=[p.id for p in ours.processes])
    checks = [*found.host, *(check for one in found.processes for check in one.checks)]
    assert [check for check in checks if (check.ready is False) != (check.fix is not None)] == []


def test_a_process_that_is_no_part_of_a_server_is_refused(files: AgentFiles) -> None:
    with pytest.raises(NotFound):
        preflight(table=ProcessTable(), files=files, process_ids=[process_id(os.getpid()) or ""])


def test_a_host_without_servers_is_looked_at_all_the_same(
    tmp_path: Path, files: AgentFiles
) -> None:
    found = preflight(table=ProcessTable(make(tmp_path / "proc")), files=files)
    assert found.processes == []
    assert found.restarts == []
    assert {check.capability for check in found.host} == {
        "stacks",
        "free space",
        "host facts",
        "clock",
    }


def _whole(table: ProcessTable, pid: int) -> Server:
    """The played server, once each of its processes has its title."""

    def look() -> list[Server]:
        seen = table.processes().servers
        ours = [one for one in seen if one.processes[0].pid == pid]
        return [one for one in ours if not one.starting and len(one.processes) >= 4]

    return until(look)[0]


@pytest.mark.parametrize(
    ("ready", "share"),
    [
        pytest.param([True, True, False], 0.667, id="two-of-three"),
        pytest.param([True, None, None], 1.0, id="unknown-does-not-count"),
        pytest.param([None], None, id="nothing-known"),
        pytest.param([], None, id="nothing-asked"),
    ],
)
def test_the_score_is_ready_of_known(ready: list[bool | None], share: float | None) -> None:
    checks = [Check(capability="stacks", ready=one, says="") for one in ready]
    assert score(checks) == share


# Stacks -------------------------------------------------------------------------------------


def test_py_spy_is_tried_on_a_child_of_ours() -> None:
    found = look_at_rights()
    assert found.problem is None
    assert found.pyspy_version is not None
    assert found.pyspy_version >= (0, 4, 1)
    assert found.seccomp in ("off", "filter")


def test_a_py_spy_that_fails_is_told_by_its_own_words(tmp_path: Path) -> None:
    broken = tmp_path / "py-spy"
    broken.write_text("#!/bin/sh\necho 'Error: Permission denied (os error 13)' >&2\nexit 1\n")
    broken.chmod(0o755)
    error = try_pyspy(str(broken)).error
    assert error is not None
    assert error.kind == "permission"


def test_a_header_on_stdout_is_no_dump(tmp_path: Path) -> None:
    broken = tmp_path / "py-spy"
    broken.write_text("#!/bin/sh\necho 'Process 1: python'\necho 'Failed to suspend' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert try_pyspy(str(broken)).error is not None


def test_a_running_process_is_ready() -> None:
    with stuck("lock") as pid:
        checks = by_name(stack_checks(process(pid), look_at_rights()))
    assert {name: check.ready for name, check in checks.items()} == {
        "stacks": True,
        "native stacks": True,
        "cpu profile": True,
    }


def test_a_stopped_process_gives_plain_stacks_only() -> None:
    with stuck("lock") as pid, stopped(pid):
        checks = by_name(stack_checks(process(pid), look_at_rights()))
    assert checks["stacks"].ready is True
    assert "exact" in checks["stacks"].says
    assert checks["native stacks"].ready is False
    assert checks["cpu profile"].ready is False


def test_a_process_in_another_namespace_is_not_promised_native_stacks() -> None:
    with stuck("lock") as pid:
        there = process(pid, own_pid_namespace=True)
        check = by_name(stack_checks(there, look_at_rights()))["native stacks"]
    assert check.ready is None


def test_a_zombie_has_ended() -> None:
    command = [sys.executable, str(PROGRAMS / "stuck.py"), "zombie"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            pid = int(said_ready(parent))
            checks = stack_checks(process(pid), look_at_rights())
        finally:
            parent.kill()
    assert {check.ready for check in checks} == {False}


def test_whether_we_may_trace_is_asked_of_the_kernel_without_touching_the_process() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to run as two users")
    ask = (
        "import sys; from app.agent.readiness.rights import may_trace; "
        "print(may_trace(int(sys.argv[1])))"
    )

    def as_nobody(pid: int) -> str:
        argv = [SYSTEM_PYTHON, "-c", ask, str(pid)]
        done = subprocess.run(
            argv, cwd=ROOT, user=NOBODY, group=NOBODY, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    with stuck("lock") as ours, stuck("lock", user=NOBODY) as theirs:
        assert may_trace(ours) is True
        assert may_trace(theirs) is True
        assert as_nobody(ours) == "False"
    assert may_trace(ours) is None


# Coredumps ----------------------------------------------------------------------------------


def test_a_pipe_that_the_driver_reads_is_ready_and_is_left_alone(tmp_path: Path) -> None:
    with reading(tmp_path / "corepipe.cuda.x") as child:
        check = coredump_check(process(child.pid))
        assert child.stdout is not None
        woken, _, _ = select.select([child.stdout], [], [], 0.3)
    if "Free space" in (check.fix or ""):
        pytest.skip("too little free space here for a coredump")
    assert (check.ready, woken) == (True, [])
    assert "seen after a trigger" in check.says


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        pytest.param({"CUDA_COREDUMP_FILE": "| cat > /x"}, "into a command", id="command"),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": "log_only"}, "contains log_only", id="log-only"
        ),
        pytest.param({"CUDA_COREDUMP_FILE": "/not/there/%p"}, "/not/there", id="no-folder"),
    ],
)
def test_a_dump_that_would_be_useless_is_not_ready(
    tmp_path: Path, environment: dict[str, str], words: str
) -> None:
    with reading(tmp_path / "corepipe.cuda.x", **environment) as child:
        check = coredump_check(process(child.pid))
    assert check.ready is False
    assert words in check.says
    assert check.fix


def test_what_the_resource_tracker_was_started_with_counts(tmp_path: Path) -> None:
    told = {"CUDA_COREDUMP_GENERATION_FLAGS": "log_only"}
    with (
        reading(tmp_path / "corepipe.cuda.x") as rank,
        running("-c", "input()", "multiprocessing.resource_tracker", **told) as tracker,
    ):
        until(lambda: tracker_is_seen(tracker.pid))
        ours = [process(rank.pid), process(tracker.pid)]
        check = coredump_check(ours[0], ours[0], tracker_environments(one.pid for one in ours))
    assert "log_only" in check.says


def tracker_is_seen(pid: int) -> bool:
    """Before exec a process still has our own environment."""
    return "multiprocessing.resource_tracker" in command_line(pid)


def test_a_process_without_cuda_is_not_told_to_restart() -> None:
    with stuck("lock") as pid:
        check = coredump_check(process(pid))
    assert check.ready is False
    assert check.says.startswith("It has not loaded CUDA")  # equal for all ranks: no pid
    assert "estart" not in (check.fix or "")


# NCCL and torch -----------------------------------------------------------------------------


def test_ras_is_ready_where_the_server_itself_listens() -> None:
    port = free_port()
    listen = f"import socket; s = socket.create_server(('127.0.0.1', {port})); print('ready'); "
    code = f"{listen}import sys; sys.stdout.flush(); input()"
    with running("-c", code, NCCL_RAS_ADDR=f"localhost:{port}") as child:
        said_ready(child)
        check = ras_check(server(process(child.pid)))
    assert check.ready is True
    assert str(port) in check.says


def test_ras_needs_nccl() -> None:
    with stuck("lock") as pid:
        check = ras_check(server(process(pid)))
    assert check.ready is False
    assert "has loaded NCCL" in check.says


def test_ras_that_was_turned_off_is_told(tmp_path: Path) -> None:
    pid = 2**22 + 7  # beyond what any kernel gives
    root = make(tmp_path / "proc", Made(pid, 1, ["python"], maps="7f r /opt/libnccl.so.2\n"))
    (root / str(pid) / "environ").write_bytes(b"NCCL_RAS_ENABLE=0\0")
    check = ras_check(server(process(pid)), root)
    assert check.ready is False
    assert "NCCL_RAS_ENABLE=0" in check.says


@pytest.mark.parametrize(
    ("environment", "ready"),
    [
        pytest.param({}, True, id="size-not-told"),
        pytest.param({"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}, True, id="records"),
        pytest.param({"TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}, False, id="records-nothing"),
    ],
)
def test_a_flight_recorder_is_ready_by_its_pipe_and_its_size(
    tmp_path: Path, environment: dict[str, str], ready: bool
) -> None:
    with reading(tmp_path / "trace_0.pipe", **environment) as child:
        check = recorder_check(process(child.pid), environments([process(child.pid)]))
    assert check.ready is ready


def test_without_a_pipe_there_is_no_flight_recorder() -> None:
    with stuck("lock") as pid:
        check = recorder_check(process(pid), [])
    assert check.ready is False
    assert check.command is not None


# Log, version, space ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "ready", "words"),
    [
        pytest.param("file", True, "server.log", id="file"),
        pytest.param("pipe", False, "pipe", id="pipe"),
        pytest.param("null", False, "thrown away", id="null"),
    ],
)
def test_a_log_is_ready_where_it_is_a_file(
    tmp_path: Path, output: str, ready: bool, words: str
) -> None:
    with (tmp_path / "server.log").open("w") as log:
        to = {"file": log.fileno(), "pipe": subprocess.PIPE, "null": subprocess.DEVNULL}[output]
        argv = [sys.executable, "-c", "import time; time.sleep(60)"]
        with subprocess.Popen(argv, stdout=to, stderr=to) as child:
            check = log_check(server(process(child.pid)))
            child.kill()
            child.communicate(timeout=20)
    assert check.ready is ready
    assert words in check.says


def test_the_version_is_that_of_the_installed_package(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "site-packages"
    (packages / "sglang-0.5.9.post1.dist-info").mkdir(parents=True)
    library = packages / "torch.so"
    library.write_bytes(b"\0" * 4096)
    with played({"maps": str(library)}, "--port", "1") as root:
        assert until(lambda: sglang_version(root.pid)) == (0, 5, 9)
    assert sglang_version(root.pid) is None


def test_facts_of_a_server_come_from_its_command_line_and_its_processes() -> None:
    flags = ["--crash-dump-folder", "/a b", "--tokenizer-worker-num", "4", "--node-rank", "1"]
    table = ProcessTable()
    with played(TREE, "--port", "1", "--tp", "2", *flags) as root:
        facts = server_facts(_whole(table, root.pid))
    assert facts.crash_dump_folder == "/a b"
    assert (facts.tokenizer_workers, facts.node_rank) == (4, 1)
    assert facts.rust_ingress is False
    assert facts.command_line_known


def test_no_room_is_not_ready(tmp_path: Path) -> None:
    full = AgentFiles.open(tmp_path / "full", quota_bytes=0)
    check = free_space_check(full)
    assert check.ready is False
    assert check.fix


# The command --------------------------------------------------------------------------------


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as status:
        main(["preflight", *arguments])
    return int(status.value.code or 0)


def test_the_command_prints_one_document(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with stuck("lock") as pid:
        assert ended("--pid", str(pid), "--state-dir", str(tmp_path / "none"), "--json") == 0
    found = Preflight.model_validate(json.loads(capfdbinary.readouterr().out))
    assert found.processes[0].process_id is not None
    assert found.processes[0].process_id.startswith(f"{pid}.")
    assert not (tmp_path / "none").exists()


def test_the_command_prints_a_fix_below_each_red_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stuck("lock") as pid:
        assert ended("--pid", str(pid), "--state-dir", str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    red = [number for number, line in enumerate(lines) if line.startswith("  NOT READY")]
    assert red
    for number in red:
        below = lines[number + 1 :]
        block = below[: _next(below)]
        assert sum(line.strip().startswith("fix:") for line in block) == 1


def _next(lines: list[str]) -> int:
    """Where the next check or section begins."""
    begins = (n for n, line in enumerate(lines) if not line.startswith(" " * 14))
    return next(begins, len(lines))


def test_a_pid_without_a_process_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--pid", str(2**22 + 7)) == 1
    assert "no process" in capsys.readouterr().err


def test_the_tool_is_found_where_the_agent_is_installed() -> None:
    assert find_tool("py-spy") == str(Path(sys.executable).parent / "py-spy")
