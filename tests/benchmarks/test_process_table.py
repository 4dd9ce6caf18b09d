"""What a look at the servers of a busy host costs."""

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.agent.processes import proc
from app.agent.processes.gpus import GpuReader
from app.agent.processes.table import ProcessTable
from tests.benchmarks.cpu import cpu_seconds
from tests.benchmarks.table import row
from tests.integration.played import played
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.benchmark

PROCESSES = 500
FRESH_SECONDS = 0.5  # an answer is given again for so long


def test_a_look_at_five_hundred_processes(tmp_path: Path) -> None:
    torch = tmp_path / "libtorch_cpu.so"
    torch.write_bytes(b"x")
    ranks = [{"title": f"sglang::scheduler_TP{i}", "maps": str(torch)} for i in range(8)]
    table = ProcessTable(gpus=GpuReader(driver=()))

    def look() -> list[list[int]]:
        time.sleep(FRESH_SECONDS)  # costs no CPU
        servers = table.processes().servers
        return [server.ports for server in servers if len(server.processes) > len(ranks)]

    with ExitStack() as stack:
        for port in (free_port(), free_port()):
            stack.enter_context(played({"listens": port, "children": ranks}, f"--port={port}"))
        until(lambda: sum(map(bool, look())) == 2, seconds=60)
        sleeps = [subprocess.Popen(["sleep", "600"]) for _ in range(PROCESSES - len(proc.pids()))]
        try:
            seconds = cpu_seconds(look, rounds=5)
        finally:
            for sleep in sleeps:
                sleep.kill()
            for sleep in sleeps:
                sleep.wait(10)
    row("Look at 500 processes, two servers of 8 ranks", f"{seconds * 1e3:.0f} ms CPU", "< 50 ms")

    assert seconds < 0.05
