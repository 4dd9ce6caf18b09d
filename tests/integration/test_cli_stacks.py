"""``incident-console stacks take``, as a person at the host's terminal calls it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from app.agent.touching.tools import find_tool
from tests.integration.command_line import ROOT, Answer
from tests.integration.stuck import PROGRAMS, said_ready, stuck
from tests.waiting import until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="py-spy on processes: Linux only"),
    pytest.mark.skipif(find_tool("py-spy") is None, reason="py-spy is not installed"),
]
NO_SUCH_PID = 4_194_303
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def arguments(*options: str, under: Sequence[str] = ()) -> list[str]:
    return [*under, sys.executable, "-m", "app", "stacks", "take", *options]


def take(folder: Path, *options: str, under: Sequence[str] = ()) -> Answer:
    done = subprocess.run(
        arguments(*options, under=under),
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def test_a_named_process_gives_a_folder_of_samples(tmp_path: Path) -> None:
    with stuck("lock") as pid:
        done = take(tmp_path, "--pid", str(pid), "--samples", "2", "--interval-seconds", "0.5")

        assert done.returncode == 0, done.stderr
        [folder] = tmp_path.iterdir()
        assert done.stdout.strip() == folder.name
        assert {file.name for file in folder.iterdir()} == {
            f"process-{pid}-1.pyspy.json",
            f"process-{pid}-2.pyspy.json",
            "answer.json",
        }
        assert (folder.stat().st_mode & 0o777, *modes(folder)) == (0o700, 0o600, 0o600, 0o600)


def modes(folder: Path) -> list[int]:
    return [file.stat().st_mode & 0o777 for file in folder.iterdir()]


def test_a_process_that_is_gone_does_not_cost_the_other_its_stacks(tmp_path: Path) -> None:
    with stuck("lock") as pid:
        named = ["--pid", str(NO_SUCH_PID), "--pid", str(pid)]
        done = take(tmp_path, *named, "--samples", "1", "--out", "taken", "--json")

        assert done.returncode == 0
        told = orjson.loads(done.stdout)
        assert told["folder"] == "taken"
        assert [one["pid"] for one in told["done"]] == [pid]
        assert [one["kind"] for one in told["refused"]] == ["process_gone_or_zombie"]
        assert str(NO_SUCH_PID) in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_refused_process_has_an_empty_file_and_the_reason_beside_it(tmp_path: Path) -> None:
    without = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    with stuck("lock") as pid:
        done = take(tmp_path, "--pid", str(pid), "--samples", "1", "--out", "t", under=without)

        assert done.returncode == 1
        assert "No process gave its stacks." in done.stderr
        empty = tmp_path / "t" / f"process-{pid}-1.pyspy.json"
        assert empty.read_bytes() == b""
        error = Path(f"{empty}.err").read_text()
        assert error.startswith("permission: ")
        assert "CAP_SYS_PTRACE" in error


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "evidence").touch()
    with stuck("lock") as pid:
        done = take(tmp_path, "--pid", str(pid), "--out", "there")

    assert done.returncode == 1
    assert "not empty" in done.stderr
    assert [file.name for file in (tmp_path / "there").iterdir()] == ["evidence"]


@pytest.mark.slow
def test_stopped_by_hand_it_keeps_what_it_has(tmp_path: Path) -> None:
    with stuck("lock") as pid:
        process = subprocess.Popen(
            arguments("--pid", str(pid), "--out", "taken", "--interval-seconds", "30"),
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        first = tmp_path / "taken" / f"process-{pid}-1.pyspy.json"
        until(lambda: first.exists() and first.stat().st_size)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)

        assert time.monotonic() - began < 25
        assert process.returncode == 1
        assert "what was taken is kept" in error
        assert (tmp_path / "taken" / "answer.json").exists()


@contextmanager
def pretend_servers(folder: Path, *ports: str) -> Iterator[list[list[int]]]:
    """The pids of the ranks of processes that look like servers."""
    package = folder / "sglang"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(PROGRAMS / "pretend_server.py", package / "launch_server.py")
    shutil.copy(PROGRAMS / "stuck.py", package / "stuck.py")
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", "sglang.launch_server", "--port", port],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for port in ports
    ]
    try:
        yield [[int(pid) for pid in said_ready(server).split()] for server in servers]
    finally:
        for server in servers:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate(timeout=20)


def test_two_servers_are_never_guessed_between(tmp_path: Path) -> None:
    with pretend_servers(tmp_path, "31001", "31002") as ranks:
        done = take(tmp_path, "--samples", "1")

        assert done.returncode == 1
        assert "servers run here" in done.stderr
        for one, other in ranks:
            assert f"--pid {one} --pid {other}" in done.stderr
        assert not [path for path in tmp_path.iterdir() if path.name != "sglang"]


def test_a_rank_that_is_named_by_pid_keeps_the_name_of_its_rank(tmp_path: Path) -> None:
    with pretend_servers(tmp_path, "31003") as [[_, second]]:
        done = take(tmp_path, "--pid", str(second), "--samples", "1", "--out", "t", "--json")

        assert done.returncode == 0, done.stderr
        [sample] = orjson.loads(done.stdout)["done"]
        assert (sample["rank"], sample["file"]["name"]) == ("TP1", f"TP1-{second}-1.pyspy.json")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_without_a_pid_all_ranks_of_the_one_server_are_read(tmp_path: Path) -> None:
    alone = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces may not be unshared here")  # other servers would be seen too
    script = (
        "import sys; from pathlib import Path; from tests.integration import test_cli_stacks as t; "
        "folder = Path(sys.argv[1]); servers = t.pretend_servers(folder, '31004'); "
        "servers.__enter__(); done = t.take(folder, '--samples', '1', '--json'); "
        "servers.__exit__(None, None, None); print(done.stdout, end='')"
    )
    done = subprocess.run(
        [*alone, sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=True,
    )
    told = orjson.loads(done.stdout)

    assert [sample["rank"] for sample in told["done"]] == ["TP0", "TP1"]
    assert told["refused"] == []
