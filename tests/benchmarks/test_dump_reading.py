"""What it costs to read a dump without running it, beside what unpickling it costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.large_dump import write_dump
from tests.benchmarks.table import row

pytestmark = pytest.mark.benchmark

ROUNDS = 3
MOST_TIMES, MOST_BYTES = 1.8, 200_000_000  # the store has what is left to twice
MOST_BYTES_OF_A_GREAT_ONE = 1_700_000_000
READ = """
import resource, sys, time
from pathlib import Path
from app.clients.dumps import index_file
rows = []
began = time.process_time()
document = index_file(Path(sys.argv[1]), take=lambda batch: rows.append(len(batch)))
own, reader = time.process_time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = own + reader.ru_utime + reader.ru_stime
print(sum(rows), document["finished"], seconds, reader.ru_maxrss * 1024)
"""
UNPICKLED = """
import pickle, sys, time
from pathlib import Path
from tests.benchmarks.large_dump import sglang_named
with sglang_named(), Path(sys.argv[1]).open("rb") as file:
    began = time.process_time()
    dump = pickle.load(file)
    print(time.process_time() - began)
"""


def test_reading_a_dump_costs_less_than_twice_of_unpickling_it(tmp_path: Path) -> None:
    path = tmp_path / "dump.pkl"
    write_dump(path, 10_000)
    unpickled = min(_unpickled(path) for _ in range(ROUNDS))
    read, most = min(_read(path, 10_000) for _ in range(ROUNDS))
    row(
        "dump of 10,000 requests: rows and summary, reader and its caller",
        f"{read / unpickled:.2f} × `pickle.load` ({read:.2f} CPU s), {most / 1e6:.0f} MB",
        f"≤ {MOST_TIMES:g} ×, ≤ 200 MB",
    )

    assert read <= MOST_TIMES * unpickled
    assert most <= MOST_BYTES


def test_a_dump_of_a_hundred_thousand_is_read_in_time_and_memory_that_grow_with_it(
    tmp_path: Path,
) -> None:
    few, many = tmp_path / "few.pkl", tmp_path / "many.pkl"
    write_dump(few, 10_000)
    write_dump(many, 100_000)
    for_few, _ = min(_read(few, 10_000) for _ in range(ROUNDS))
    for_many, most = _read(many, 100_000)
    row(
        "dump of 100,000 requests, 830 MB: rows and summary",
        f"{for_many / for_few:.1f} × that of 10,000 ({for_many:.1f} CPU s), {most / 1e6:.0f} MB",
        "≤ 13 ×, ≤ 1700 MB",
    )

    assert for_many <= 13 * for_few
    assert most <= MOST_BYTES_OF_A_GREAT_ONE


def _read(path: Path, requests: int) -> tuple[float, int]:
    """CPU seconds of reader and caller together, and the memory of the reader."""
    rows, finished, seconds, most = _run(READ, path)

    assert (int(rows), int(finished)) == (requests, requests)
    return float(seconds), int(most)


def _unpickled(path: Path) -> float:
    return float(_run(UNPICKLED, path)[0])


def _run(program: str, path: Path) -> list[str]:
    """What *program* prints, in a process whose children are its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.split()
