"""How long a command takes that does nothing, start of the interpreter included."""

import time
from pathlib import Path

import pytest

from tests.benchmarks.table import row
from tests.integration.test_cli_bundle import console

pytestmark = pytest.mark.benchmark

STARTS = 7


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("bundle", "--help"), ("bundle", "collect", "--help")],
    ids=" ".join,
)
def test_the_command_line_starts_within_600_ms(arguments: tuple[str, ...], tmp_path: Path) -> None:
    console(*arguments, folder=tmp_path)  # fills the cache of bytecode
    taken = []
    for _ in range(STARTS):
        start = time.perf_counter()
        assert console(*arguments, folder=tmp_path).returncode == 0
        taken.append(time.perf_counter() - start)
    row(f"`incident-console {' '.join(arguments)}`", f"{min(taken):.2f} s", "≤ 0.6 s")

    assert min(taken) <= 0.6
