"""Facts from figures, and from files of /proc and of control groups, made up in a folder."""

from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from app.agent.evidence import cgroup_memory
from app.agent.evidence.clock import clock_fact
from app.agent.evidence.host_figures import (
    boot_fact,
    booted_at,
    host_figures,
    load_fact,
    memory_fact,
    network_fact,
    swap_facts,
)
from app.agent.evidence.pressure import pressure_facts
from app.agent.evidence.process_facts import process_facts
from app.agent.evidence.sizes import seconds_text, size_text
from app.protocol.messages import Process

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 1024**3


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("available", "level"), [(50, "good"), (9, "warn"), (2, "bad")], ids=["much", "little", "none"]
)
def test_memory_is_judged_by_what_is_available(available: int, level: str) -> None:
    fact = memory_fact(available * GIB, 100 * GIB)
    assert fact.level == level
    assert "of 100 GiB memory is available" in fact.says


def test_swapped_memory_is_a_warning_of_its_own() -> None:
    assert [fact.says for fact in swap_facts(1024**2)] == ["1.0 MiB of memory is swapped out."]
    assert swap_facts(0) == []


def test_load_is_told_against_the_cpus_there_are() -> None:
    assert load_fact(8.5, 1, 1, 4).level == "warn"
    calm = load_fact(7.9, 1, 0.25, 4)
    assert (calm.level, calm.says) == (
        "quiet",
        "Load 7.90, 1.00 and 0.25 over 1, 5 and 15 min, on 4 CPUs.",
    )


def test_a_host_that_has_just_started_is_marked() -> None:
    assert [boot_fact(seconds).level for seconds in (599, 601)] == ["warn", "quiet"]


def test_a_network_tells_which_interface_lost_packets() -> None:
    assert network_fact({"lo": 0, "ib1": 1200, "eth0": 3}).says.endswith(": eth0 3, ib1 1,200.")
    assert network_fact({"lo": 0}).says == "Its network lost no packet to errors since boot."


def test_this_host_tells_each_of_its_figures() -> None:
    facts = list(host_figures())
    assert {fact.topic for fact in facts} == {"boot", "load", "memory", "network"}
    assert "unknown" not in {fact.level for fact in facts}


@pytest.mark.parametrize("text", [None, "x\n", "MemTotal: x kB\n"])
def test_figures_that_cannot_be_read_are_unknown(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))  # a setting of psutil
    if text is not None:
        _write(tmp_path, {"meminfo": text, "stat": text})
    facts = [fact for fact in host_figures() if fact.topic != "load"]  # asked of the C library
    assert [(fact.topic, fact.level) for fact in facts] == [
        ("boot", "unknown"),
        ("memory", "unknown"),
        ("memory", "unknown"),  # its swap
        ("network", "unknown"),
    ]
    assert booted_at() is None


def test_pressure_is_told_for_each_resource(tmp_path: Path) -> None:
    line = "{} avg10={:.2f} avg60=0.00 avg300=0.00 total=5\n"
    for what, some, full in (("cpu", 90, 0), ("memory", 1, 0), ("io", 30, 25)):
        text = line.format("some", some) + line.format("full", full)
        _write(tmp_path, {f"pressure/{what}": text})
    assert [fact.level for fact in pressure_facts(tmp_path)] == ["warn", "good", "warn"]


def test_nothing_that_cannot_be_read_is_good(tmp_path: Path) -> None:
    facts = [
        *pressure_facts(tmp_path),
        *cgroup_memory.memory_facts(7, "it", proc=tmp_path, groups=tmp_path),
        *process_facts(Process(id="7.1", pid=7, title="x", role="other"), tmp_path),
        clock_fact(NOW, lambda: None),
    ]
    assert {fact.level for fact in facts} == {"unknown"}


@pytest.mark.parametrize("garbage", ["\0\0\0", "avg10", "MemTotal: x kB", "-1 -2", ""])
def test_garbage_is_unknown(garbage: str, tmp_path: Path) -> None:
    _write(tmp_path, {"pressure/io": garbage})
    assert pressure_facts(tmp_path)[2].level == "unknown"


@pytest.mark.parametrize(
    ("kept", "level"), [(True, "good"), (False, "warn"), (None, "unknown")], ids=str
)
def test_the_clock_is_good_only_where_something_keeps_it(kept: bool | None, level: str) -> None:
    fact = clock_fact(NOW, lambda: kept)
    assert fact.level == level
    assert "2026-01-01 00:00:00 UTC" in fact.says


VERSION_2 = {
    "7/cgroup": "0::/pods/one\n",
    "groups/pods/one/memory.max": "1073741824\n",
    "groups/pods/one/memory.current": "1063004405\n",
    "groups/pods/one/memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\n",
}
VERSION_1 = {
    "7/cgroup": "4:memory:/one\n0::/\n",
    "groups/memory/one/memory.limit_in_bytes": "9223372036854771712\n",
    "groups/memory/one/memory.usage_in_bytes": "1048576\n",
    "groups/memory/one/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
}


@pytest.mark.parametrize(
    ("files", "says", "levels"),
    [
        (VERSION_2, "use 1014 MiB of 1.0 GiB (99%)", ["warn", "bad"]),
        (VERSION_1, "use 1.0 MiB, without a limit", ["quiet", "good"]),
    ],
    ids=["version 2", "version 1"],
)
def test_a_control_group_tells_its_limit_and_its_kills(
    files: dict[str, str], says: str, levels: list[str], tmp_path: Path
) -> None:
    _write(tmp_path, files)
    facts = cgroup_memory.memory_facts(7, "TP0", proc=tmp_path, groups=tmp_path / "groups")
    assert says in facts[0].says
    assert [fact.level for fact in facts] == levels


def test_a_limit_of_the_pod_around_the_container_counts(tmp_path: Path) -> None:
    unlimited = {"groups/pods/one/memory.max": "max\n"}
    pod = {"groups/pods/memory.max": "2000000000\n", "groups/pods/memory.current": "1990000000\n"}
    _write(tmp_path, VERSION_2 | unlimited | pod)
    fact = cgroup_memory.memory_facts(7, "TP0", proc=tmp_path, groups=tmp_path / "groups")[0]
    assert fact.level == "warn"
    assert fact.source.endswith("groups/pods")


def test_a_control_group_outside_of_what_we_see_is_unknown(tmp_path: Path) -> None:
    _write(tmp_path, {"7/cgroup": "0::/../../secret\n", "groups/x": ""})
    (fact,) = cgroup_memory.memory_facts(7, "it", proc=tmp_path, groups=tmp_path / "groups")
    assert fact.level == "unknown"


@pytest.mark.parametrize(
    ("state", "level"), [("R", "quiet"), ("S", "quiet"), ("D", "warn"), ("T", "bad"), ("Z", "bad")]
)
def test_the_state_of_a_process_is_told_in_words(state: str, level: str, tmp_path: Path) -> None:
    process = Process(
        id="7.1", pid=7, title="x", role="scheduler", state=state, wchan="futex_do_wait"
    )
    fact = process_facts(process, tmp_path)[0]
    assert fact.level == level
    assert "waits in futex_do_wait" in fact.says


def test_a_process_near_its_limit_of_open_files_is_bad(tmp_path: Path) -> None:
    limits = "Limit  Soft  Hard  Units\nMax open files            10   20   files\n"
    _write(tmp_path, {"7/limits": limits, "7/fd/x": ""})
    for number in range(10):
        (tmp_path / "7/fd" / str(number)).symlink_to("/dev/null")
    process = Process(id="7.1", pid=7, title="x", role="other", state="S")
    fact = process_facts(process, tmp_path)[1]
    assert (fact.level, fact.says) == ("bad", "other (pid 7) has 10 of 10 files open.")


def test_sizes_and_durations_have_a_unit() -> None:
    sizes = [size_text(size) for size in (0, 1023, 1536, 200 * 1024**3, 1 << 62)]
    assert sizes == ["0 B", "1023 B", "1.5 KiB", "200 GiB", "4096 PiB"]
    durations = [seconds_text(seconds) for seconds in (5, 300, 10_000, 400_000)]
    assert durations == ["5 s", "5 min", "2.8 h", "4.6 days"]
