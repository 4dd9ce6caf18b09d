import shutil
from pathlib import Path

import pytest

from app.agent.processes.gpus import GpuReader
from app.agent.processes.table import ProcessTable
from app.errors import NotFound
from tests.procfs import SERVE, Made, make, title

RANK = Made(11, 10, title("sglang::scheduler"))


def table(root: Path, *processes: Made) -> ProcessTable:
    return ProcessTable(make(root, *processes), GpuReader(driver=()))


def test_the_table_gives_what_was_found_and_says_that_there_is_no_gpu(tmp_path: Path) -> None:
    answer = table(tmp_path, Made(10, 1, SERVE), RANK).processes()
    assert [p.pid for server in answer.servers for p in server.processes] == [10, 11]
    assert (answer.gpus, answer.supported) == ("absent: no NVIDIA driver here", True)


def test_without_procfs_nothing_is_said(tmp_path: Path) -> None:
    answer = ProcessTable(tmp_path / "none", GpuReader(driver=())).processes()
    assert (answer.servers, answer.supported, answer.gpus) == ([], False, "absent: Linux only")


def test_a_process_is_found_with_its_server(tmp_path: Path) -> None:
    processes = table(tmp_path, Made(10, 1, SERVE), RANK)
    assert processes.find("11.1000").role == "scheduler"
    assert processes.server_of("11.1000").id == "10.1000"


def test_a_process_younger_than_the_last_look_is_found(tmp_path: Path) -> None:
    processes = table(tmp_path, Made(10, 1, SERVE))
    processes.processes()
    make_more(tmp_path, RANK)
    assert processes.find("11.1000").pid == 11


def test_a_process_is_found_in_its_state_of_now(tmp_path: Path) -> None:
    processes = table(tmp_path, Made(10, 1, SERVE), RANK)
    assert processes.find("11.1000").state == "S"
    again(tmp_path, Made(11, 10, RANK.arguments, state="T"))
    assert processes.find("11.1000").state == "T"


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (None, "Process 11 has ended."),
        (Made(11, 10, (), comm="sglang::schedul", state="Z"), "Process 11 has ended."),
        (
            Made(11, 10, RANK.arguments, start=2000),
            "Process 11 was restarted: its pid belongs to another process now.",
        ),
        (
            Made(11, 10, RANK.arguments, exe="/tmp/other/python3"),
            "Process 11 runs another program, or as another user, than when it was shown.",
        ),
        (
            Made(11, 10, RANK.arguments, uid=33),
            "Process 11 runs another program, or as another user, than when it was shown.",
        ),
    ],
    ids=["gone", "zombie", "another start", "another program", "another user"],
)
def test_what_is_not_as_it_was_shown_is_not_found(
    tmp_path: Path, now: Made | None, says: str
) -> None:
    processes = table(tmp_path, Made(10, 1, SERVE), RANK)
    processes.processes()
    again(tmp_path, now)
    with pytest.raises(NotFound) as refused:
        processes.find("11.1000")
    assert refused.value.what == says


@pytest.mark.parametrize("process_id", ["30.1000", "0.1", "11", "x", "11.1000\n", "../1.2", "²1.1"])
def test_what_belongs_to_no_server_is_never_found(tmp_path: Path, process_id: str) -> None:
    processes = table(tmp_path, Made(10, 1, SERVE), RANK, Made(30, 1, ("bash",)))
    for ask in (processes.find, processes.server_of):
        with pytest.raises(NotFound):
            ask(process_id)


def make_more(root: Path, made: Made) -> None:
    other = make(root.parent / f"{root.name}-more", made)
    shutil.copytree(other / str(made.pid), root / str(made.pid), symlinks=True)


def again(root: Path, now: Made | None) -> None:
    """Process 11 as it is *now*."""
    shutil.rmtree(root / "11")
    if now is not None:
        make_more(root, now)
