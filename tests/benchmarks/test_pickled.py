"""What it costs to read a dump without unpickling it, beside those who unpickle or scan it."""

import gc
import mmap
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from app.domain.pickled import read_pickle
from tests.benchmarks.cpu import cpu_seconds
from tests.benchmarks.large_dump import sglang_named, write_dump
from tests.benchmarks.peer import tool
from tests.benchmarks.table import row

pytestmark = pytest.mark.benchmark

REQUESTS = 10_000
MOST_OVER_PICKLE = 1.2
MOST_BYTES = 200_000_000
TIMES_FASTER_THAN_PICKLESCAN = 10
TIMES_LESS_MEMORY_THAN_THE_TOOL = 2

# Run with the path of the dump; at its end each says its CPU seconds and the most memory it held.
# Not getrusage's maximum: that one begins with what the parent held.
_USED = """
import atexit, pathlib, re, sys, time
def used():
    held_kib = re.search(r"VmHWM:\\s+([0-9]+)", pathlib.Path("/proc/self/status").read_text())[1]
    print(time.process_time(), int(held_kib) * 1024, file=sys.stderr)
atexit.register(used)
"""
OURS = """
import gc, mmap
from app.domain.pickled import read_pickle
gc.disable()
with open(sys.argv[1], "rb") as file:
    read = read_pickle(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
assert read.problem is None
"""
PICKLESCAN = """
from picklescan.scanner import scan_file_path
scan_file_path(sys.argv[1])
"""
THE_TOOL = """
import runpy
from tests.benchmarks.large_dump import sglang_named
tool = sys.argv[2]
sys.argv = [tool, "summarize-dump", "--input-file", sys.argv[1]]
with sglang_named():
    runpy.run_path(tool, run_name="__main__")
"""


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 000 requests in 85 MB."""
    path = tmp_path_factory.mktemp("dump") / "requests.pkl"
    write_dump(path, REQUESTS)
    return path


def spent(program: str, *arguments: object, python: str = sys.executable) -> tuple[float, int]:
    """CPU seconds and most memory in bytes of a Python process that runs *program*."""
    command = [python, "-c", _USED + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=True)
    cpu, most_bytes = done.stderr.split()[-2:]
    return float(cpu), int(most_bytes)


def test_reading_costs_about_what_unpickling_costs(dump: Path) -> None:
    def unpickled() -> object:
        with dump.open("rb") as file:
            return pickle.load(file)

    def read() -> object:
        with dump.open("rb") as file:
            answer = read_pickle(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        assert answer.problem is None
        return answer

    with sglang_named():
        theirs = cpu_seconds(unpickled)
    gc.disable()  # as the reader of dumps does; unpickling is measured as everybody does it
    try:
        ours = cpu_seconds(read)
    finally:
        gc.enable()
    row(
        f"Dump of {REQUESTS} requests, 85 MB: opened without running it",
        f"{ours:.2f} CPU s",
        f"≤ {MOST_OVER_PICKLE} × pickle.load",
        f"{ours / theirs:.2f} × pickle.load",
    )
    assert ours <= MOST_OVER_PICKLE * theirs


def test_ten_times_the_requests_cost_ten_times_the_time(dump: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.pkl"
    write_dump(small, REQUESTS // 10)

    tenth, whole = (min(spent(OURS, one)[0] for _ in range(3)) for one in (small, dump))

    row("Dump of 10 times as many requests", f"{whole / tenth:.1f} × the CPU time", "linear")
    assert whole < 15 * tenth


def test_reading_holds_less_memory_than_the_public_tool(dump: Path) -> None:
    _, ours = spent(OURS, dump)
    assert ours <= MOST_BYTES
    figure = f"Dump of {REQUESTS} requests: memory, the mapped file included"
    row(figure, f"{ours / 1e6:.0f} MB", "≤ 200 MB")

    _, theirs = spent(THE_TOOL, dump, tool())

    row(figure, f"{ours / 1e6:.0f} MB", "", f"{theirs / ours:.1f} × less than summarize-dump")
    assert theirs >= TIMES_LESS_MEMORY_THAN_THE_TOOL * ours


def test_reading_is_ten_times_as_fast_as_scanning(dump: Path) -> None:
    python = os.environ.get("PICKLESCAN_PYTHON")
    if not python:
        pytest.skip("PICKLESCAN_PYTHON does not name a Python that has picklescan")
    ours, _ = spent(OURS, dump)

    theirs, most_bytes = spent(PICKLESCAN, dump, python=python)

    row(
        f"Dump of {REQUESTS} requests: opened without running it",
        f"{ours:.2f} CPU s",
        f"≥ {TIMES_FASTER_THAN_PICKLESCAN} × as fast as picklescan",
        f"{theirs / ours:.0f} × as fast as picklescan, which held {most_bytes / 1e6:.0f} MB",
    )
    assert theirs >= TIMES_FASTER_THAN_PICKLESCAN * ours
