"""Which process uses which GPU: the driver is asked in a child that may hang and be killed."""

import pkgutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from app.agent.processes import proc
from app.agent.touching.tools import ToolRun, run_tool
from app.domain.titles import printable
from app.protocol.messages import GpuUse

DEADLINE_SECONDS = 3.0
_FRESH_SECONDS = 10.0
_PAUSE_SECONDS = 60.0  # after a question that the driver did not answer
_MAX_BYTES = 1024 * 1024
_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel: never another
# One of them is there wherever the driver is: Linux, a container with a GPU, WSL.
_DRIVER = (Path("/dev/nvidiactl"), Path("/proc/driver/nvidia"), Path("/dev/dxg"))


@dataclass(frozen=True, slots=True)
class Gpus:
    """The driver's answer; *uses* by pid, None where it cannot be told who uses what."""

    says: str
    uses: dict[int, list[GpuUse]] | None = None


class _Gpu(BaseModel):
    index: int
    name: str | None
    processes: dict[int, int | None] | None


class _Answer(BaseModel):
    absent: str | None = None
    gpus: Annotated[list[_Gpu], Field(max_length=256)] = []


def ask_nvml() -> list[str]:
    """The command that asks: a copy of the program, so that it runs from inside a zip as well."""
    program = pkgutil.get_data("app.agent.processes", "nvml_child.py")
    assert program is not None
    return [sys.executable, "-I", "-c", program.decode()]


class GpuReader:
    """Asks at most every ten seconds, and one question at a time."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        driver: Sequence[Path] = _DRIVER,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._command, self._driver = command, driver
        self._deadline_seconds = deadline_seconds
        self._lock = threading.Lock()
        self._last, self._asked_again_at = Gpus("not asked yet"), 0.0

    @property
    def last(self) -> Gpus:
        """What was answered last, without asking."""
        return self._last

    def read(self) -> Gpus:
        """The answer, within the deadline; that there is none is an answer too."""
        if not any(path.exists() for path in self._driver):
            return Gpus("absent: no NVIDIA driver here")
        with self._lock:
            if time.monotonic() >= self._asked_again_at:
                run = run_tool(
                    self._command or ask_nvml(),
                    deadline_seconds=self._deadline_seconds,
                    max_bytes=_MAX_BYTES,
                )
                pause = _FRESH_SECONDS if run.status == 0 else _PAUSE_SECONDS
                self._asked_again_at = time.monotonic() + pause
                self._last = _told(run, self._deadline_seconds)
            return self._last


def _told(run: ToolRun, deadline_seconds: float) -> Gpus:
    if run.timed_out:
        return Gpus(f"no answer from the driver in {deadline_seconds:g} s")
    try:
        answer = _Answer.model_validate_json(run.out)
    except ValidationError:
        return Gpus(f"no answer from the driver: the question ended with status {run.status}")
    if answer.absent is not None:
        return Gpus(f"absent: {printable(answer.absent)}")
    return Gpus(_counted(answer.gpus), _uses(answer.gpus))


def _counted(gpus: Sequence[_Gpu]) -> str:
    names = Counter(printable(gpu.name or "GPU that does not answer", 80) for gpu in gpus)
    return ", ".join(f"{count} × {name}" for name, count in names.items()) or "no GPU"


def _uses(gpus: Sequence[_Gpu]) -> dict[int, list[GpuUse]] | None:
    """By pid. The driver counts pids as the host does: inside a container they fit nobody."""
    if proc.own_namespace("pid") != _FIRST_PID_NAMESPACE:
        return None
    uses: dict[int, list[GpuUse]] = {}
    for gpu in gpus:
        if gpu.processes is None:
            return None
        for pid, used_bytes in gpu.processes.items():
            use = GpuUse(index=gpu.index, name=gpu.name, used_bytes=used_bytes)
            uses.setdefault(pid, []).append(use)
    return uses
