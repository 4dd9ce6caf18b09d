"""Every saved attack on readers of pickles, read by a process that is shut in."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.clients.sandbox import Answered, Limits, run_apart
from tests.captured import ATTACKS, needs

READER = "tests.programs.pickle_reader"
MOST_BYTES = 256 * 1024**2
CPU_SECONDS = 10
CANARY = Path(tempfile.gettempdir()) / "canary-console-test"

pytestmark = pytest.mark.slow

# What is no attack on the reader itself: it is read, and its shape is judged by who asked for it.
SOUND = {
    "pickle/64_billion_laughs_tuple.pkl": "tuple",  # 200 tuples, shared
    "pickle/66_cycle.pkl": "list",
    "pickle/68_reduce_bytearray_10g.pkl": "Inert",
}


def manifest() -> list[dict[str, Any]]:
    file = ATTACKS / "MANIFEST.json"
    if not file.exists():
        return []
    return [one for one in json.loads(file.read_text()) if one["file"].startswith("pickle/")]


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    CANARY.unlink(missing_ok=True)
    yield
    assert not CANARY.exists()


def read(path: Path) -> dict[str, Any]:
    """What the process said of the file; it fails where the process met a limit of its own."""
    limits = Limits(
        memory_bytes=MOST_BYTES,
        mapped_bytes=path.stat().st_size,
        cpu_seconds=CPU_SECONDS,
        deadline_seconds=60,
    )
    with path.open("rb") as file:
        said = run_apart(READER, file.fileno(), {}, limits)
    assert isinstance(said, Answered), said
    answer: dict[str, Any] = said.value
    return answer


def test_the_attacks_are_beside_this_checkout() -> None:
    needs(ATTACKS / "pickle")

    assert len(manifest()) > 50


@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: entry["file"].partition("/")[2])
def test_an_attack_ends_as_it_must(entry: dict[str, Any]) -> None:
    answer = read(ATTACKS / entry["file"])

    if entry["category"] == "pickle/exec":
        assert answer["problem"] or answer["blocked"]
    elif entry["category"] == "pickle/legit":
        assert answer["problem"] is None
    elif entry["file"] in SOUND:
        assert (answer["problem"], answer["type"]) == (None, SOUND[entry["file"]])
    elif entry["category"] in ("pickle/dos", "pickle/malformed"):
        assert answer["problem"] in ("limit", "truncated", "bad-value", "empty", "wrapped")
    else:
        assert entry["category"] in ("pickle/policy", "pickle/shape", "replay/ssrf")


def test_the_attacks_are_live() -> None:
    attack = needs(ATTACKS / "pickle" / "02_stack_global_p4.pkl")
    load = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"

    subprocess.run([sys.executable, "-I", "-c", load, str(attack)], check=False)

    assert CANARY.exists(), "the payload does not run, so the other tests prove nothing"
    CANARY.unlink()
