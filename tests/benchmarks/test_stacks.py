"""How fast the stacks of a thousand ranks are read and compared, in CPU time of this process."""

from collections.abc import Callable, Sequence

import orjson
import pytest

from app.domain.stacks.compare import Comparison, compare
from app.domain.stacks.reading import read_files
from app.domain.stacks.sources import StackFile
from app.domain.stacks.told import told
from tests import stacks
from tests.benchmarks.cpu import cpu_seconds
from tests.benchmarks.table import row

pytestmark = pytest.mark.benchmark

RANKS, HELPERS = 1_024, 30
APART = 77
CALLS = ("wait (threading.py:359)", "run (tqdm/_monitor.py:60)", "_bootstrap (threading.py:1030)")


def doing(rank: int) -> Sequence[str]:
    return stacks.EVICTS if rank == APART else stacks.CHECKS_CACHE


def text(rank: int) -> StackFile:
    helpers = [(f"worker-{number}", CALLS) for number in range(HELPERS)]
    title = f"sglang::scheduler_TP{rank}"
    dump = stacks.dump_text(title, 10_000 + 100 * rank, doing(rank), helpers=helpers)
    return StackFile(f"tp{rank}.txt", dump.encode())


def json(rank: int) -> StackFile:
    pid = 10_000 + 100 * rank
    [main] = orjson.loads(stacks.dump_json(pid, doing(rank)))
    [helper] = orjson.loads(stacks.dump_json(pid, CALLS))
    frames = helper["frames"][: len(CALLS)]
    threads = [
        {**helper, "frames": frames, "thread_name": f"w{number}", "os_thread_id": pid + number}
        for number in range(1, HELPERS + 1)
    ]
    return StackFile(f"TP{rank}-{pid}-1.pyspy.json", orjson.dumps([*threads, main]))


def from_files(files: Sequence[StackFile]) -> Comparison:
    reading = read_files(files)
    comparison = compare(reading.samples, reading.missing, states=reading.states)
    orjson.dumps(told(comparison, reading))
    return comparison


@pytest.mark.parametrize(
    ("make", "form", "limit"), [(json, "JSON", 1.0), (text, "text", 2.0)], ids=["json", "text"]
)
def test_a_thousand_ranks_are_compared_within_a_second(
    make: Callable[[int], StackFile], form: str, limit: float
) -> None:
    files = [make(rank) for rank in range(RANKS)]
    comparison = from_files(files)
    assert comparison.outliers == (f"TP{APART}",)
    taken = cpu_seconds(lambda: from_files(files))
    megabytes = sum(len(file.body) for file in files) / 1e6
    figure = f"Stacks of {RANKS:,} ranks × {HELPERS + 1} threads, {form} of {megabytes:.0f} MB"
    row(figure, f"{taken:.2f} CPU s", f"≤ {limit:g}")
    assert taken <= limit
