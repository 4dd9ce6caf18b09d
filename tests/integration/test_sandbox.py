"""A reader that went mad: whatever it does, its caller gets a word, and soon."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.clients.sandbox import Answered, Limits, Refused, run_apart
from tests.programs.hostile_reader import MANY_BYTES
from tests.waiting import BUSY

pytestmark = pytest.mark.slow

READER = "tests.programs.hostile_reader"
TIGHT = Limits(
    memory_bytes=256 * 1024**2, cpu_seconds=20, deadline_seconds=80.0, output_bytes=1_000_000
)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_text("what is in it")
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def asked(file: int, doing: str, limits: Limits = TIGHT) -> Answered | Refused:
    return run_apart(READER, file, {"doing": doing}, limits)


def test_a_reader_reads_its_file_and_nothing_of_where_it_was_started(file: int) -> None:
    found = asked(file, "read")

    assert isinstance(found, Answered)
    assert found.value == {"text": "what is in it", "cwd": "/"}


def test_a_reader_is_nobody_and_knows_nothing_of_our_environment(
    file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCIDENT_CONSOLE_SECRET", "x")
    found = asked(file, "who")

    assert isinstance(found, Answered)
    assert "INCIDENT_CONSOLE_SECRET" not in found.value["environment"]
    assert found.value["user"] != 0


@pytest.mark.parametrize("doing", ["socket", "send", "open", "write", "start", "fork", "change"])
def test_a_reader_can_reach_open_write_and_start_nothing(file: int, doing: str) -> None:
    canary = Path("/tmp/canary-console-test")
    canary.unlink(missing_ok=True)
    found = asked(file, doing)

    assert isinstance(found, Answered)
    assert found.value.startswith("refused: ")
    assert not canary.exists()


@pytest.mark.parametrize(
    ("doing", "limit", "says"),
    [
        ("memory", "memory", "more than 256 MiB of memory"),
        ("many", "memory", "more than 256 MiB of memory"),
        ("cpu", "cpu", "not read within 1 s of processor time"),
        ("talk", "output", "more than 1000000 bytes of answer"),
        ("crash", "crash", "crashed (SIGSEGV)"),
        ("killed", "memory", "killed from outside"),
        ("error", "failure", "broke off (ValueError)"),
        ("silent", "failure", "gave no answer"),
        ("nonsense", "failure", "gave no answer"),
    ],
)
def test_a_reader_that_meets_a_limit_is_refused_by_its_name(
    file: int, doing: str, limit: str, says: str
) -> None:
    found = asked(file, doing, replace(TIGHT, cpu_seconds=1) if doing == "cpu" else TIGHT)

    assert isinstance(found, Refused)
    assert (found.limit, says in found.says) == (limit, True), found
    assert found.says.startswith("Rejected: ")
    assert "secret words" not in found.says


def test_a_reader_that_sleeps_is_ended_at_its_deadline(file: int) -> None:
    began = time.monotonic()
    found = asked(file, "sleep", Limits(deadline_seconds=1.0))

    assert isinstance(found, Refused)
    assert found.limit == "time"
    assert time.monotonic() - began < 1.0 * BUSY * BUSY  # it sleeps ten minutes


def test_a_reader_that_only_complains_is_still_heard(file: int) -> None:
    found = asked(file, "complain")

    assert isinstance(found, Answered)
    assert found.value == "said"


def test_a_file_that_is_mapped_has_room_on_top(file: int) -> None:
    room = Limits(memory_bytes=256 * 1024**2, mapped_bytes=1024**3)
    found = asked(file, "memory", room)

    assert isinstance(found, Answered)
    assert found.value == MANY_BYTES


def test_a_module_that_is_not_there_is_a_failure(file: int) -> None:
    found = run_apart("app.clients.no_such_reader", file, {}, TIGHT)

    assert isinstance(found, Refused)
    assert found.limit == "failure"
