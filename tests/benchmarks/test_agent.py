"""What an agent costs its host while nobody asks it anything."""

import time
from pathlib import Path

import pytest

from tests.benchmarks.processes import Console
from tests.benchmarks.table import row
from tests.integration.test_agent_process import running

pytestmark = pytest.mark.benchmark

START_SECONDS = 5.0  # the start is not idle
IDLE_SECONDS = 30.0


def test_an_idle_agent_leaves_the_machine_alone(tmp_path: Path) -> None:
    with running(tmp_path / "state") as agent:
        process = Console(agent.process.pid, 0)
        time.sleep(START_SECONDS)
        before = process.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        share = (process.cpu_seconds() - before) / IDLE_SECONDS
        resident_mb = process.resident_bytes() / 1e6
    row(f"Idle agent, {IDLE_SECONDS:.0f} s: CPU", f"{share:.2%} of a core", "< 1 %")
    row("Idle agent: memory", f"{resident_mb:.0f} MB", "< 80 MB")

    assert share < 0.01
    assert resident_mb < 80
