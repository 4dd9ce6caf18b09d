from pathlib import Path

import pytest

from app.agent.processes import proc
from app.agent.processes.details import container
from app.agent.processes.ports import Listeners, Listening
from tests.procfs import Made, make, tcp, title

HEX = "0123456789ab" + "c" * 52


def test_the_stat_of_a_process_whose_name_is_made_to_confuse(tmp_path: Path) -> None:
    root = make(tmp_path, Made(7, 3, ("python3",), comm="a) R (b\n", state="t", start=55))
    stat = proc.read_stat(7, root)
    assert stat is not None
    assert (stat.comm, stat.state, stat.parent_pid, stat.id) == ("a) R (b\n", "t", 3, "7.55")
    assert (stat.threads, stat.rss_bytes, stat.utime_ticks) == (3, 2500 * 4096, 77)


@pytest.mark.parametrize("content", ["", "7 (x", "7 (x) S 1", "7 (x) S " + "- " * 40])
def test_a_stat_that_makes_no_sense_is_no_process(tmp_path: Path, content: str) -> None:
    make(tmp_path, Made(7, 1, ()))
    (tmp_path / "7" / "stat").write_text(content)
    assert proc.read_stat(7, tmp_path) is None


def test_of_a_process_that_is_gone_nothing_is_known_and_nothing_raised(tmp_path: Path) -> None:
    root = make(tmp_path)
    assert proc.read_stat(7, root) is None
    assert proc.read_status(7, root) == {}
    assert proc.command_line(7, root) == []
    assert proc.descriptors(7, root) == []
    readings = (proc.environment, proc.wchan, proc.cgroup, proc.executable, proc.links)
    assert [read(7, root) for read in readings] == [None] * 5
    assert proc.namespace(7, "pid", root) is None
    assert proc.mapped(7, "libcuda", root=root) is None
    assert Listeners(root).of(7) == Listening(frozenset(), whole=False)
    assert not proc.alive("7.55", root)


def test_the_blanks_that_a_title_leaves_are_no_arguments(tmp_path: Path) -> None:
    root = make(tmp_path, Made(7, 1, title("sglang::scheduler")), Made(8, 1, ("a", "", "b")))
    assert proc.command_line(7, root) == ["sglang::scheduler"]
    assert proc.command_line(8, root) == ["a", "", "b"]


@pytest.mark.parametrize(
    ("block", "read"),
    [
        (b"A=1\0B=x=y\0", {"A": "1", "B": "x=y"}),
        (b"", {}),
        (b"\0" * 50, None),
        (b"\0\0\0=1\0B=2\0", None),
        (b"eduler_TP0\0\0\0B=2\0", None),
    ],
    ids=["whole", "empty", "wiped", "wiped in part", "under a long title"],
)
def test_an_environment_that_a_title_wiped_is_not_known(
    tmp_path: Path, block: bytes, read: dict[str, str] | None
) -> None:
    make(tmp_path, Made(7, 1, ()))
    (tmp_path / "7" / "environ").write_bytes(block)
    assert proc.environment(7, tmp_path) == read


def test_a_library_is_found_wherever_in_the_list_it_stands(tmp_path: Path) -> None:
    for padding in range(65_500, 65_560, 7):  # across the pieces in which it is read
        root = make(
            tmp_path / str(padding), Made(7, 1, (), maps="x" * padding + "/lib/libcuda.so.1\n")
        )
        assert proc.mapped(7, "libcuda", "libtorch", root=root) == {"libcuda"}


def test_a_process_lives_while_its_start_is_the_same_and_it_is_no_zombie(tmp_path: Path) -> None:
    root = make(tmp_path, Made(7, 1, (), start=5), Made(8, 1, (), start=5, state="Z"))
    assert [proc.alive(id_, root) for id_ in ("7.5", "7.6", "8.5")] == [True, False, False]
    assert proc.process_id(7, root) == "7.5"
    assert proc.pid_of("7.5") == 7


def test_descriptors_come_with_the_flags_they_were_opened_with(tmp_path: Path) -> None:
    make(tmp_path, Made(7, 1, (), files={3: "/tmp/pipe", 12: "socket:[9]"}))
    (tmp_path / "7" / "fdinfo").mkdir()
    (tmp_path / "7" / "fdinfo" / "3").write_text("pos:\t0\nflags:\t0104000\n")
    assert proc.descriptors(7, tmp_path) == [
        proc.Descriptor(3, "/tmp/pipe", 0o104000),
        proc.Descriptor(12, "socket:[9]", None),
    ]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("0::/system.slice/a.service\n", "/system.slice/a.service"),
        ("12:cpu,cpuacct:/c\n9:memory:/docker/m\n0::/\n", "/docker/m"),
        ("1:name=systemd:/x\n", None),
        ("", None),
    ],
    ids=["version 2", "version 1", "named only", "empty"],
)
def test_the_cgroup_is_the_one_that_counts_memory(
    tmp_path: Path, text: str, path: str | None
) -> None:
    assert proc.cgroup(7, make(tmp_path, Made(7, 1, (), cgroup=text))) == path


@pytest.mark.parametrize(
    ("path", "short"),
    [
        (f"/docker/{HEX}", "0123456789ab"),
        (f"/system.slice/docker-{HEX}.scope", "0123456789ab"),
        (f"/kubepods.slice/pod1/cri-containerd-{HEX}.scope", "0123456789ab"),
        (f"/{'f' * 64}/{HEX}", "0123456789ab"),
        (f"/x{HEX}0", None),
        ("/user.slice", None),
        (None, None),
    ],
)
def test_the_container_stands_in_the_path_of_the_cgroup(
    path: str | None, short: str | None
) -> None:
    assert container(path) == short


def test_a_process_listens_where_its_sockets_do_in_its_own_network(tmp_path: Path) -> None:
    table = tcp((30000, "0A", 9), (8000, "0A", 77), (443, "01", 10), (31000, "0A", 11))
    files = {0: "/dev/null", 3: "socket:[9]", 4: "socket:[10]", 5: "socket:[11]"}
    other = Made(8, 1, (), files=files, namespaces={"net": "net:[5]"}, tcp=tcp((9000, "0A", 9)))
    root = make(tmp_path, Made(7, 1, (), files=files, tcp=table), other)
    look = Listeners(root)
    assert look.of(7) == Listening(frozenset({30000}), whole=True), (
        "what is below the first connection is not read"
    )
    assert look.of(8).ports == {9000}


def test_the_time_of_the_boot_is_read_or_not_known(tmp_path: Path) -> None:
    assert proc.boot_seconds(make(tmp_path / "a", btime=123)) == 123
    assert proc.boot_seconds(tmp_path / "b") is None
