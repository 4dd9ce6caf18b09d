import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.coredump_target import target

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "gpu-host-check"
FOR_A_DUMP_BYTES = 11 * 1024**3

pytestmark = pytest.mark.slow


def run(folder: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--out", str(folder / "report.json"), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def checked(folder: Path, typed: str) -> dict[str, Any]:
    """The report on a process that plays the driver."""
    variables = {
        "CUDA_COREDUMP_PIPE": str(folder / "corepipe.cuda"),
        "CUDA_COREDUMP_FILE": "core.%p",
    }
    with target(folder, "ok", environment=variables) as found:
        done = run(folder, "--pid", str(found.pid), typed=typed)
        assert done.returncode == 0, done.stderr
        assert found.process.poll() is None
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def test_everything_is_tried_and_told_in_one_file(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < FOR_A_DUMP_BYTES:
        pytest.skip("too little free space here for a coredump")
    report = checked(tmp_path, socket.gethostname())
    steps = report["steps"]
    assert set(steps) == {
        "host",
        "preflight",
        "nvml",
        "stacks, plain",
        "stacks, native",
        "nccl ras",
        "flight recorder",
        "coredump",
    }
    assert len(steps["stacks, plain"]["answer"]["done"]) == 2
    dumped = steps["coredump"]["answer"]
    assert dumped["history"][0][1] == "sent"
    assert dumped["coredump"]["state"] == "complete"
    assert sum(dumped["sections"]["count_by_type"].values()) == dumped["sections"]["rows"]
    assert report["after"]["state"] in "SR"


def test_without_the_typed_name_nothing_is_dumped(tmp_path: Path) -> None:
    report = checked(tmp_path, "yes\n")
    assert "coredump" not in report["steps"]
    assert not list(tmp_path.glob("core.*[0-9]"))


def test_without_a_gpu_it_says_what_to_give_it(tmp_path: Path) -> None:
    done = run(tmp_path)
    if done.returncode == 0:
        pytest.skip("there is a GPU here")
    assert "--pid" in done.stderr
    assert not (tmp_path / "report.json").exists()
