"""What is looked at before a trigger, where a test needs no GPU and no second user for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.agent.coredump.dump_folders import Folder
from app.agent.coredump.endings import Limits
from app.agent.coredump.gate import check_process, check_room, mps_server, uses_of
from app.agent.coredump.pipes import Uses
from app.agent.touching.rooted import open_below, open_folder, walk_below
from app.agent.touching.writers import writers
from app.domain.cuda_settings import CudaSettings
from app.errors import Conflict, NotFound
from app.protocol.messages import GpuUse, Process


def process_tree(root: Path, pid: int, program: str, uid: int) -> None:
    folder = root / str(pid)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_text(f"{program}\0-d\0")
    (folder / "status").write_text(f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")


@pytest.mark.parametrize(
    ("program", "uid", "found"),
    [
        pytest.param("/usr/bin/nvidia-cuda-mps-server", 1000, True, id="of-this-user"),
        pytest.param("nvidia-cuda-mps-server", 0, True, id="of-root"),
        pytest.param("nvidia-cuda-mps-server", 1001, False, id="of-another-user"),
        pytest.param("nvidia-cuda-mps-control", 1000, False, id="only-its-daemon"),
    ],
)
def test_an_mps_server_of_the_user_of_a_process_is_seen(
    tmp_path: Path, program: str, uid: int, found: bool
) -> None:
    process_tree(tmp_path, 77, program, uid)
    assert mps_server(1000, tmp_path) == (77 if found else None)


def uses(settings: CudaSettings) -> Uses:
    return Uses(os.getpid(), os.getpid(), os.geteuid(), "gpu-a-01", settings)


@pytest.mark.parametrize(
    ("flags", "largest", "refused"),
    [
        pytest.param({"skip_global_memory"}, 0, None, id="light"),
        pytest.param(None, 0, "as large as it", id="flags-unknown"),
        pytest.param(set(), 0, "as large as it", id="with-memory"),
        pytest.param({"skip_global_memory"}, 2**60, "largest dump", id="large-before"),
    ],
)
def test_room_is_asked_for_by_what_the_dump_may_hold(
    tmp_path: Path, flags: set[str] | None, largest: int, refused: str | None
) -> None:
    settings = CudaSettings(flags=frozenset(flags) if flags is not None else None)
    gpus = [GpuUse(index=0, used_bytes=2**61)]
    process = Process(id="1.1", pid=1, title="t", role="scheduler", gpus=gpus)
    folder = Folder(os.open(tmp_path, os.O_RDONLY), str(tmp_path))
    limits = Limits(min_free_bytes=1)
    try:
        if refused is None:
            check_room(uses(settings), [folder], process, limits, largest)
        else:
            with pytest.raises(Conflict) as found:
                check_room(uses(settings), [folder], process, limits, largest)
            assert refused in found.value.detail
    finally:
        os.close(folder.descriptor)


def test_a_process_that_has_ended_is_said_to_have() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with pytest.raises(NotFound):
        uses_of(child.pid, child.pid)


def test_a_process_under_a_debugger_is_refused() -> None:
    program = (
        "import ctypes, sys; ctypes.CDLL(None).ptrace(0, 0, 0, 0); print('ready', flush=True);"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", program]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(Conflict, match=f"Process {os.getpid()} is debugging"):
            check_process(uses_of(child.pid, child.pid))
    finally:
        child.kill()
        child.communicate()


def test_the_environment_of_a_process_tells_its_settings() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
        env={"CUDA_COREDUMP_FILE": "/d/%p"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = uses_of(child.pid, os.getpid())
        assert (found.settings.file, found.settings.enabled) == ("/d/%p", False)
        assert (found.owner, found.inner_pid) == (os.geteuid(), child.pid)
    finally:
        child.communicate()


@pytest.mark.parametrize("opens", [open_below, walk_below], ids=["openat2", "by-component"])
def test_no_symbolic_link_is_followed_below_the_root_of_another(
    tmp_path: Path, opens: type
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "out").symlink_to("/etc")
    start = os.open(tmp_path, os.O_RDONLY)
    try:
        os.close(opens(start, "a/b"))
        for path in ("out", "out/ssl", "a/../../../etc", "absent"):
            with pytest.raises(OSError, match=path.partition("/")[0]):
                opens(start, path)
    finally:
        os.close(start)


def test_a_folder_is_found_from_the_working_folder_of_a_process(tmp_path: Path) -> None:
    opened = open_folder(os.getpid(), "tests")
    try:
        assert os.fstat(opened).st_ino == Path("tests").stat().st_ino
    finally:
        os.close(opened)


def test_only_who_can_write_a_file_counts_as_a_writer(tmp_path: Path) -> None:
    file = tmp_path / "core.7"
    file.write_text("x")
    there = file.stat()

    with file.open():
        assert writers("core.7", there.st_dev, there.st_ino, likely=1) == []
    with file.open("a"):
        for likely in (1, os.getpid()):
            assert writers("core.7", there.st_dev, there.st_ino, likely=likely) == [os.getpid()]
