"""What a worker costs that has nothing to do: at most 8 % of a core."""

import os
import time
from pathlib import Path

import pytest

from tests.integration import processes

SECONDS = 20.0


@pytest.mark.benchmark
def test_an_idle_worker_leaves_the_machine_alone(tmp_path: Path) -> None:
    with processes.working(tmp_path) as worker:
        time.sleep(3)  # the start is not idle
        before = _cpu_seconds(worker.pid)
        time.sleep(SECONDS)
        share = (_cpu_seconds(worker.pid) - before) / SECONDS
        resident_mb = _resident_bytes(worker.pid) / 1e6
    assert share <= 0.08, f"{share:.1%} of a core"
    assert resident_mb <= 200, f"{resident_mb:.0f} MB"


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
