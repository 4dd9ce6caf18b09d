"""Whether a cgroup froze a process, as both versions of cgroups say it."""

from pathlib import Path

import pytest

from app.agent.processes.freezer import is_frozen


@pytest.mark.parametrize(
    ("line", "file", "content", "frozen"),
    [
        pytest.param("6:freezer:/a/b", "freezer/a/b/freezer.state", "FROZEN\n", True, id="v1"),
        pytest.param(
            "6:freezer:/a/b", "freezer/a/b/freezer.state", "FREEZING\n", True, id="v1-on-its-way"
        ),
        pytest.param("6:freezer:/a", "freezer/a/freezer.state", "THAWED\n", False, id="v1-not"),
        pytest.param("0::/a", "a/cgroup.events", "populated 1\nfrozen 1\n", True, id="v2"),
        pytest.param("0::/a", "a/cgroup.events", "populated 1\nfrozen 0\n", False, id="v2-not"),
        pytest.param("0::/a", "unified/a/cgroup.events", "frozen 1\n", True, id="both-mounted"),
        pytest.param("0::/a", "elsewhere", "frozen 1\n", False, id="nothing-to-read"),
        pytest.param("nonsense", "a/cgroup.events", "frozen 1\n", False, id="nonsense"),
    ],
)
def test_a_frozen_process(line: str, file: str, content: str, frozen: bool, tmp_path: Path) -> None:
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "cgroup").write_text(f"8:pids:/x\n{line}\n")
    path = tmp_path / "cgroups" / file
    path.parent.mkdir(parents=True)
    path.write_text(content)

    assert is_frozen(7, root=tmp_path / "proc", cgroups=tmp_path / "cgroups") is frozen
