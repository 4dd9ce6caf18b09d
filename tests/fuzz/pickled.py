"""Feeds the reader of pickles with changed ones until the time is over.

    python -m tests.fuzz.pickled [seconds]

With atheris installed (the extra ``fuzz``) its coverage leads the changes, else chance alone does.
An input fails when reading raises, takes longer than the bytes can explain, or says something else
than real unpickling does of plain data. Such an input is left in the working directory.
"""

import io
import pickle
import random
import struct
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.domain import pickled
from app.domain.pickled.opcodes import NAMES
from tests.pickles import Both, Ids, Modality, Parameters, Request, Span, Stated, Table, same

LONGEST_BYTES = 64 * 1024
# What the real one raises; it is stricter in places, such as strings of Python 2.
STRICTER = (
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
SECONDS_A_BYTE = 1e-4
SECONDS_ALWAYS = 1.0  # others may have the processor


class PlainOnly(pickle._Unpickler):
    """The real thing, for data that names nothing.

    The one of pure Python: that of C goes on with other bytes where an opcode crosses the end of
    a frame, instead of refusing it.
    """

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not plain")


def one_input(data: bytes) -> None:
    """Read *data*; raise when the answer is not what it has to be."""
    started = time.process_time()
    read = pickled.read_pickle(data)
    taken = time.process_time() - started
    assert taken < SECONDS_ALWAYS + len(data) * SECONDS_A_BYTE, f"{taken} s for {len(data)} bytes"
    if read.problem is not None:
        assert 0 <= read.problem.position <= len(data)
        assert read.problem.says.endswith(".")
    elif not read.blocked:
        _compare(data, read.value)


def _compare(data: bytes, value: object) -> None:
    try:
        real = PlainOnly(io.BytesIO(data)).load()
    except STRICTER:
        return
    try:
        assert same(real, value)
    except RecursionError:
        return  # it holds itself


def seeds() -> Iterator[bytes]:
    """Pickles of all kinds in all protocols."""
    objects = [
        Request(rid="r", ids=tuple(range(90)), text="x" * 600, f=[0.5, 1.5], n=None, d={"a": {}}),
        [list(range(-5, 2000, 3)), {1, 2}, frozenset("ab"), b"\xff" * 5000, bytearray(b"x"), 2**80],
        [
            Modality.IMAGE,
            Span(1, 2),
            Ids([1, 2]),
            Table(a=1),
            Parameters(),
            Stated((1.0,)),
            Request,
        ],
    ]
    for protocol in range(6):
        yield from (pickle.dumps(one, protocol) for one in objects)
    yield pickle.dumps(Both("a", "b", 1))


def changed(chance: random.Random, data: bytes) -> bytes:
    """*data* with some of its bytes replaced, removed, repeated or made into opcodes."""
    new = bytearray(data)
    for _ in range(chance.randrange(1, 9)):
        at, length = chance.randrange(len(new) + 1), chance.choice((1, 1, 2, 4, 9, 40))
        match chance.randrange(4):
            case 0:
                new[at : at + 1] = bytes([chance.choice([*NAMES])])
            case 1:
                new[at : at + length] = chance.randbytes(length)
            case 2:
                del new[at : at + length]
            case _:
                new[at:at] = new[at : at + length] * chance.choice((1, 3, 50))
    return bytes(new[:LONGEST_BYTES])


def by_chance(seconds: float, seed: int) -> int:
    """Try changed seeds for that long; how many."""
    chance, pool, tried = random.Random(seed), [*seeds()], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = changed(chance, chance.choice(pool))
        try:
            one_input(data)
        except BaseException:
            Path(f"crash-{seed}-{tried}").write_bytes(data)
            raise
        tried += 1
    return tried


def by_coverage(seconds: float, folder: Path) -> None:
    """Let atheris lead; it ends the process."""
    atheris = import_module("atheris")
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (folder / f"seed-{number}").write_bytes(seed)
    for name in [name for name in sys.modules if name.startswith("app.domain.pickled")]:
        module = sys.modules[name]
        for function in [one for one in vars(module).values() if hasattr(one, "__code__")]:
            atheris.instrument_func(function)
    options = [f"-max_total_time={seconds:.0f}", f"-max_len={LONGEST_BYTES}", "-timeout=10"]
    atheris.Setup([sys.argv[0], *options, "-rss_limit_mb=1024", str(folder)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    for_seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    if find_spec("atheris"):
        by_coverage(for_seconds, Path("build/fuzz/pickled"))
    else:
        tried = by_chance(for_seconds, seed=time.time_ns())
        sys.stdout.write(f"{tried} inputs, by chance alone.\n")
