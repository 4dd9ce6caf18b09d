"""What is not asked for: nothing is written unless it is certain where it goes."""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.agent.coredump.pipes import Pipe, write
from app.agent.processes import proc
from app.errors import Conflict
from tests.integration.coredump_target import (
    HOST,
    QUICK,
    ROOT,
    Agent,
    Target,
    agent,
    target,
)
from tests.waiting import until


@pytest.mark.parametrize(
    ("variant", "says", "fix"),
    [
        pytest.param("no_fifo", "not loaded CUDA", "once the server is up", id="no-pipe"),
        pytest.param("no_reader", "Nobody reads the pipe", "Restart", id="nobody-reads-it"),
        pytest.param("regular_file", "a regular file", "who made it", id="a-file-in-its-place"),
        pytest.param("symlink", "a symbolic link", "who made it", id="a-link-in-its-place"),
        pytest.param("two_pipes", "2 pipes that could be it", "CUDA_COREDUMP_PIPE", id="two"),
    ],
)
def test_without_exactly_one_pipe_that_the_process_reads_nothing_is_written(
    tmp_path: Path, variant: str, says: str, fix: str
) -> None:
    victim = tmp_path / "t" / "victim"
    victim.parent.mkdir()
    victim.write_text("precious")
    with target(tmp_path / "t", variant) as fake, agent(tmp_path / "a") as ours:
        refused = ours.trigger(fake.id)

        assert refused.state == "refused"
        assert says in refused.says
        assert fix in str(refused.fix)
        assert victim.read_text() == "precious"
        if variant == "regular_file":
            assert fake.pipe.read_text() == "precious"


def test_a_pipe_that_appears_with_cuda_works_once_it_is_there(tmp_path: Path) -> None:
    with target(tmp_path / "t", "delayed_fifo") as fake, agent(tmp_path / "a") as ours:
        early = ours.trigger(fake.id)
        assert fake.process.stdin is not None
        fake.process.stdin.write("\n")
        fake.process.stdin.flush()
        fake.wait_for("pipe")

        assert early.state == "refused"
        assert ours.ending(ours.trigger(fake.id)).state == "complete"


def test_a_pipe_of_another_name_is_found_by_the_template_of_the_environment(
    tmp_path: Path,
) -> None:
    told = {"CUDA_COREDUMP_PIPE": str(tmp_path / "trigger-%p-%h.pipe")}
    with (
        target(tmp_path / "t", "ok", "--keep-environment", environment=told) as fake,
        agent(tmp_path / "a") as ours,
    ):
        sent = ours.trigger(fake.id)

        assert (sent.state, sent.found_by) == ("sent", "template")
        assert ours.ending(sent).state == "complete"


def test_a_pipe_of_another_name_is_not_guessed_where_the_environment_is_wiped(
    tmp_path: Path,
) -> None:
    told = {"CUDA_COREDUMP_PIPE": str(tmp_path / "trigger-%p.pipe")}
    with target(tmp_path / "t", "ok", environment=told) as fake, agent(tmp_path / "a") as ours:
        assert ours.trigger(fake.id).state == "refused"


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"CUDA_COREDUMP_FILE": "| gzip -9 > f"}, "into a command"),
        ({"CUDA_COREDUMP_FILE": "absent/core.%p"}, "does not exist"),
        ({"CUDA_COREDUMP_FILE": "stream"}, "no regular file"),
        ({"CUDA_COREDUMP_GENERATION_FLAGS": "skip_abort,log_only"}, "log_only"),
    ],
    ids=["command", "missing-folder", "fifo", "no-file-flag"],
)
def test_a_dump_that_could_not_be_watched_is_not_asked_for(
    tmp_path: Path, told: dict[str, str], says: str
) -> None:
    (tmp_path / "t").mkdir()
    os.mkfifo(tmp_path / "t" / "stream")
    with (
        target(tmp_path / "t", "ok", "--keep-environment", environment=told) as fake,
        agent(tmp_path / "a") as ours,
    ):
        refused = ours.trigger(fake.id)

        assert (refused.state, says in refused.says) == ("refused", True)


def _refusal(ours: Agent, fake: Target) -> str:
    refused = ours.trigger(fake.id)
    assert refused.state == "refused"
    return refused.says


def test_the_name_of_the_host_must_be_typed(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a") as ours:
        refused = ours.trigger(fake.id, confirm="gpu-a-02")

        assert refused.state == "refused"
        assert HOST in str(refused.fix)


def test_a_process_that_is_no_part_of_a_server_is_refused(tmp_path: Path) -> None:
    with agent(tmp_path / "a") as ours:
        own = proc.process_id(os.getpid())
        assert own is not None
        refused = ours.trigger(own)

        assert (refused.state, "no part of a server" in refused.says) == ("refused", True)


def test_a_process_that_was_restarted_is_refused(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a") as ours:
        refused = ours.trigger(f"{fake.pid}.1")

        assert (refused.state, "restarted" in refused.says) == ("refused", True)


def test_a_process_that_another_tool_is_on_is_refused(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a") as ours:
        with ours.holds.hold(fake.pid, "py-spy"):
            assert "py-spy is on this process" in _refusal(ours, fake)

        assert ours.ending(ours.trigger(fake.id)).state == "complete"


def test_a_stopped_process_is_refused_as_its_driver_could_not_read(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a") as ours:
        os.kill(fake.pid, signal.SIGSTOP)
        until(lambda: _state(fake) == "T")

        assert "is stopped" in _refusal(ours, fake)
        assert list(fake.folder.glob("core_*")) == []


def _state(fake: Target) -> str:
    return Path(f"/proc/{fake.pid}/stat").read_text().rpartition(") ")[2][0]


def test_a_nearly_full_disk_is_refused_with_the_bytes_that_are_missing(tmp_path: Path) -> None:
    limits = replace(QUICK, min_free_bytes=2**60)
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a", limits=limits) as ours:
        assert "1024 PiB must be" in _refusal(ours, fake)


def test_an_unread_earlier_trigger_is_refused(tmp_path: Path) -> None:
    with target(tmp_path / "t", "deaf") as fake, agent(tmp_path / "a") as ours:
        writer = os.open(fake.pipe, os.O_WRONLY | os.O_NONBLOCK)
        os.write(writer, b"1")
        try:
            assert "waits unread" in _refusal(ours, fake)
        finally:
            os.close(writer)


def test_another_agent_of_the_host_keeps_the_turn_until_it_ends(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a") as ours:
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(f"\0{ours.lock}")
            other.listen()
            assert "another process of this host" in _refusal(ours, fake)

        assert ours.ending(ours.trigger(fake.id)).state == "complete"


def test_a_pipe_that_somebody_else_owns_is_not_written_to(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a pipe away")
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a") as ours:
        os.chown(fake.pipe, 65_534, -1)

        assert "belongs to user 65534" in _refusal(ours, fake)


def test_a_descriptor_that_turned_into_a_file_is_not_written_to(tmp_path: Path) -> None:
    fifo, victim = tmp_path / "corepipe", tmp_path / "victim"
    os.mkfifo(fifo)
    victim.write_text("precious")
    there = fifo.stat()
    number = os.open(victim, os.O_RDONLY)
    pipe = Pipe(
        os.getpid(), number, str(fifo), there.st_dev, there.st_ino, there.st_uid, "descriptor"
    )
    try:
        with pytest.raises(Conflict, match="was replaced"):
            write(pipe, b"1")
    finally:
        os.close(number)
    assert victim.read_text() == "precious"


def test_the_fork_of_a_process_is_not_dumped_through_the_pipe_of_its_parent(
    tmp_path: Path,
) -> None:
    other = f"corepipe.cuda.{os.uname().nodename}.1"
    with (
        target(tmp_path / "t", "ok", environment={"CUDA_COREDUMP_PIPE": other}) as fake,
        agent(tmp_path / "a") as ours,
    ):
        assert ours.trigger(fake.id).state == "refused"


def test_another_user_is_told_to_run_as_the_owner(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can become another user")
    program = """
import os, sys
from app.agent.coredump.pipes import Uses, find_pipe
from app.domain.cuda_settings import CudaSettings
from app.errors import Conflict
os.setresuid(65534, 65534, 65534)
pid = int(sys.argv[1])
try:
    find_pipe(Uses(pid, pid, 0, None, CudaSettings()))
except Conflict as error:
    print(error.detail, error.command)
"""
    with target(tmp_path / "t", "ok") as fake:
        command = [sys.executable, "-c", program, str(fake.pid)]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "the owner of the process" in said
    assert "sudo -u '#0'" in said
