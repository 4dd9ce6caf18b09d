"""What it costs to have a dump in the database, beside what unpickling it costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.large_dump import write_dump
from tests.benchmarks.table import row
from tests.benchmarks.test_dump_reading import UNPICKLED

pytestmark = pytest.mark.benchmark

ROUNDS = 3
MOST_TIMES = 2.0
REQUESTS = 10_000


def test_reading_a_dump_into_the_database_costs_twice_of_unpickling_it_at_most(
    tmp_path: Path,
) -> None:
    path = tmp_path / "dump.pkl"
    write_dump(path, REQUESTS)
    unpickled = min(float(_run("-c", UNPICKLED, str(path))[0]) for _ in range(ROUNDS))
    told = [_run("-m", "tests.benchmarks.ingesting", str(path)) for _ in range(ROUNDS)]
    assert {one[0] for one in told} == {str(REQUESTS)}
    seconds, own = min((float(whole), float(own)) for _, whole, own in told)
    row(
        "dump of 10,000 requests, 83 MB: open, validate, index into SQLite",
        f"{seconds / unpickled:.2f} × `pickle.load` ({seconds:.2f} CPU s, {own:.2f} ours)",
        f"≤ {MOST_TIMES:g} ×",
    )

    assert seconds <= MOST_TIMES * unpickled


def _run(*program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.split()
