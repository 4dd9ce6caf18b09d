"""The calls of py-spy for one reading: from the mode asked for down to one that works."""

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Literal

from app.agent.stacks.stillness import ENDED, Stance, stance
from app.agent.touching.tools import ToolRun, find_tool, run_tool
from app.domain.pyspy_errors import GONE, PySpyError, classify
from app.domain.pyspy_json import thread_count
from app.errors import Malformed
from app.protocol.messages import Mode, Process

PLAIN_SECONDS, NATIVE_SECONDS = 10.0, 20.0
MAX_OUTPUT_BYTES = 32 * 1024 * 1024  # 200 threads with native calls need 0.9 MB
BEFORE_AGAIN_SECONDS = 0.1
NATIVE_MODES = ("native", "native in its namespace")
ENTERING = ("nsenter", "unshare")  # of util-linux

TOO_MUCH = PySpyError(
    "unknown",
    f"py-spy wrote more than {MAX_OUTPUT_BYTES // 1024**2} MiB; half a stack is not kept.",
    "Take it without --native.",
)
NOT_ITS_JSON = PySpyError(
    "unknown", "What py-spy wrote is not its usual JSON.", "Use py-spy 0.4.1 or later."
)
CANCELLED = PySpyError("cancelled", "It was broken off before py-spy was done.", "Ask again.")


def first_mode(
    process: Process, wanted: Literal["plain", "native"], before: Stance
) -> tuple[Mode, list[str]]:
    """The mode to begin with, and why the native calls that were *wanted* are given up."""
    if why := before.cannot_be_paused:
        return "nonblocking", [f"Without native calls: it is {why}."] if wanted == "native" else []
    if wanted == "plain" or not process.own_pid_namespace:
        return wanted, []
    # From here py-spy takes the thread numbers of the other namespace for its own.
    if process.inner_pid and all(map(find_tool, ENTERING)):
        return "native in its namespace", []
    return "plain", [f"Without native calls: {' and '.join(ENTERING)} are needed for a container."]


@dataclass(frozen=True, slots=True)
class Try:
    """One call of py-spy: its stacks, or why there are none."""

    mode: Mode
    began_at: datetime
    run: ToolRun
    threads: int
    error: PySpyError | None


@dataclass(slots=True)
class Attempts:
    """The calls of py-spy for one reading; *notes* tell what was refused on the way."""

    process: Process
    pyspy: str
    cancel: Event | None
    root: Path
    notes: list[str] = field(default_factory=list)

    def until_one_works(self, mode: Mode) -> Try:
        """The first that gave stacks, from *mode* down; the last where none did."""
        tried = self._at_most_twice(mode)
        while tried.error and (lesser := self._lesser(mode, tried.error)):
            self.notes.append(f"Taken {lesser}; {mode} was refused: {tried.error.reason}")
            mode = lesser
            tried = self._at_most_twice(mode)
        return tried

    def _at_most_twice(self, mode: Mode) -> Try:
        tried = self._once(mode)
        if tried.error is None or not tried.error.again or self._cancelled():
            return tried
        time.sleep(BEFORE_AGAIN_SECONDS)
        return self._once(mode)

    def _once(self, mode: Mode) -> Try:
        seconds = NATIVE_SECONDS if mode in NATIVE_MODES else PLAIN_SECONDS
        began_at = datetime.now(UTC)
        run = run_tool(
            _command(self.process, mode, self.pyspy),
            deadline_seconds=seconds,
            max_bytes=MAX_OUTPUT_BYTES,
            cancel=self.cancel,
        )
        if run.status != 0 or run.timed_out:
            error = CANCELLED if self._cancelled() else _error(run, mode)
            return Try(mode, began_at, run, 0, error)
        threads, problem = _threads(run, _pid_inside(self.process, mode))
        return Try(mode, began_at, run, threads, problem)

    def _lesser(self, mode: Mode, error: PySpyError) -> Mode | None:
        """What to try after *error*: without a pause only where the state demands it by now."""
        if mode == "nonblocking" or error in (GONE, CANCELLED):
            return None
        now = stance(self.process.pid, self.root)
        if now is None or now.stat.state in ENDED:
            return None
        if now.cannot_be_paused:
            return "nonblocking"
        return "plain" if mode in NATIVE_MODES else None

    def _cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()


def _command(process: Process, mode: Mode, pyspy: str) -> list[str]:
    inside = str(_pid_inside(process, mode))
    dump = [pyspy, "dump", "--json", "--pid", inside]
    match mode:
        case "plain":
            return dump
        case "nonblocking":
            return [*dump, "--nonblocking"]
        case "native":
            return [*dump, "--native"]
        case "native in its namespace":
            # Into its pid namespace, but with our own files: py-spy and its C library must not
            # be taken from a container that may be hostile. Only /proc is mounted anew.
            enter, unshare = (find_tool(name) or name for name in ENTERING)
            into = [enter, "--target", str(process.pid), "--pid", "--"]
            return [*into, unshare, "--mount", "--mount-proc", "--", *dump, "--native"]


def _pid_inside(process: Process, mode: Mode) -> int:
    if mode == "native in its namespace" and process.inner_pid:
        return process.inner_pid
    return process.pid


def _error(run: ToolRun, mode: Mode) -> PySpyError:
    text = run.err.decode(errors="replace")
    return classify(text, status=run.status, mode=mode, timed_out=run.timed_out)


def _threads(run: ToolRun, pid: int) -> tuple[int, PySpyError | None]:
    """How many threads there are stacks of; the error where it is not what py-spy writes."""
    if run.cut:
        return 0, TOO_MUCH
    try:
        return thread_count(run.out, pid=pid), None
    except Malformed as error:
        return 0, replace(NOT_ITS_JSON, reason=f"{NOT_ITS_JSON.reason} {error.what}")
