import shutil
import subprocess
from pathlib import Path

import pytest

from app.agent.processes.nvml_child import answer

SOURCE = Path(__file__).parents[1] / "programs" / "nvml.c"


def library(folder: Path, init: int) -> tuple[str, ...]:
    """A made-up libnvidia-ml whose start answers *init*."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    made = folder / "libnvidia-ml.so.1"
    command = [compiler, "-shared", "-fPIC", f"-DINIT={init}", "-o", str(made), str(SOURCE)]
    subprocess.run(command, check=True, timeout=60)
    return ("libnot-there.so.1", str(made))


def test_each_gpu_tells_its_processes_or_that_it_does_not_answer(tmp_path: Path) -> None:
    assert answer(library(tmp_path, init=0)) == {
        "gpus": [
            {
                "index": 0,
                "name": "NVIDIA H200",
                "processes": {4711: 140_000_000_000, 4712: None},
            },
            {"index": 1, "name": None, "processes": None},
        ]
    }


@pytest.mark.parametrize(
    ("status", "says"),
    [(9, "no NVIDIA driver is loaded"), (18, "NVML answers with error 18")],
    ids=["no driver", "driver and library differ"],
)
def test_a_library_without_its_driver_says_so(tmp_path: Path, status: int, says: str) -> None:
    assert answer(library(tmp_path, init=status)) == {"absent": says}


def test_without_the_library_it_is_absent() -> None:
    assert answer(("libnot-there.so.1",)) == {"absent": "libnvidia-ml.so.1 is not installed"}
