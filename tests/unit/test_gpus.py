import json
import sys
import time
from pathlib import Path

import pytest

from app.agent.processes.gpus import GpuReader, Gpus, ask_nvml
from app.agent.processes.proc import own_namespace
from app.protocol.messages import GpuUse
from tests.waiting import BUSY

HERE = (Path("/"),)  # a path that stands for the driver
FIRST = own_namespace("pid") == "pid:[4026531836]"


def reader(program: str, deadline_seconds: float = 60.0) -> GpuReader:
    command = [sys.executable, "-I", "-c", program]
    return GpuReader(command, driver=HERE, deadline_seconds=deadline_seconds)


def printing(answer: object) -> GpuReader:
    return reader(f"print({json.dumps(json.dumps(answer))})")


def test_without_a_driver_nobody_is_asked() -> None:
    absent = GpuReader(["/no/such/program"], driver=(Path("/no/such/device"),))
    assert absent.read() == Gpus("absent: no NVIDIA driver here")


def test_the_real_question_is_answered_whatever_this_machine_has() -> None:
    says = GpuReader(ask_nvml(), driver=HERE, deadline_seconds=30).read().says
    assert says.startswith(("absent: ", "1 × ", "2 × ", "4 × ", "8 × "))


def test_a_driver_that_hangs_costs_the_deadline_once_and_is_then_left_alone(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    command = ["/bin/sh", "-c", f"echo >> {asked}; exec sleep 600"]
    hanging = GpuReader(command, driver=HERE, deadline_seconds=1.0)
    began = time.monotonic()
    assert hanging.read() == Gpus("no answer from the driver in 1 s")
    assert hanging.read() == hanging.last
    assert time.monotonic() - began < 1.0 * BUSY
    assert asked.read_text() == "\n", "asked once"


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("raise SystemExit(3)", "no answer from the driver: the question ended with status 3"),
        ("print('{')", "no answer from the driver: the question ended with status 0"),
        ("print('[]')", "no answer from the driver: the question ended with status 0"),
    ],
    ids=["failed", "cut", "another form"],
)
def test_an_answer_that_makes_no_sense_is_none(program: str, says: str) -> None:
    assert reader(program).read() == Gpus(says)


def test_an_absent_driver_is_said_in_its_own_words() -> None:
    assert printing({"absent": "no NVIDIA driver is loaded"}).read().says == (
        "absent: no NVIDIA driver is loaded"
    )


def test_gpus_are_counted_by_name_and_used_by_pid() -> None:
    h200 = {"name": "H200\n", "processes": {"7": 5, "8": None}}
    answer = printing({"gpus": [{"index": 0, **h200}, {"index": 1, **h200}]}).read()
    assert answer.says == "2 × H200\\n"
    uses = {
        7: [GpuUse(index=i, name="H200\n", used_bytes=5) for i in (0, 1)],
        8: [GpuUse(index=i, name="H200\n", used_bytes=None) for i in (0, 1)],
    }
    assert answer.uses == (uses if FIRST else None)


def test_one_gpu_that_does_not_tell_leaves_it_unknown_who_uses_what() -> None:
    lost = {"index": 1, "name": None, "processes": None}
    answer = printing({"gpus": [{"index": 0, "name": "A", "processes": {"7": 5}}, lost]}).read()
    assert answer == Gpus("1 × A, 1 × GPU that does not answer")
