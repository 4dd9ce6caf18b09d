"""Reading py-spy's JSON for a page: bounded, and with what does not fit left out and counted.

Everything in it comes from a foreign process, so nothing is believed about its shape. Source of
the fields: py-spy 0.4, ``dump --json``; frames stand newest call first, and one that belongs to
a native library names its ``module``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.plain_json import read_json
from app.errors import Malformed

MAIN = "MainThread"
MOST_THREADS = 64
MOST_FRAMES = 4_200  # of one thread; py-spy itself gives up beyond 4 096
LONGEST_NAME = 120  # characters


@dataclass(frozen=True, slots=True)
class Frame:
    """One call: the function, and where it stands; *line* None where the file names none."""

    function: str
    file: str  # short, as py-spy cuts it: "managers/scheduler.py"
    line: int | None
    native: bool  # of a library, not of Python

    @property
    def place(self) -> str:
        """``managers/scheduler.py:1126``."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Thread:
    """The stack of one thread, newest call first. *active* and *owns_gil* None: not told."""

    name: str
    main: bool
    active: bool | None
    owns_gil: bool | None
    frames: tuple[Frame, ...]
    left_out: int  # frames that were not read


@dataclass(frozen=True, slots=True)
class ProcessStacks:
    """The threads of one process, the main one first. *problem* says why there are none."""

    threads: tuple[Thread, ...]
    left_out: int = 0  # threads that were not read
    problem: str | None = None


def read_stacks(body: bytes) -> ProcessStacks:
    """What ``py-spy dump --json`` wrote; never raises, as a page shows the other ranks anyway."""
    try:
        told = read_json(body)
    except Malformed as error:
        return ProcessStacks((), problem=error.what)
    if not isinstance(told, list):
        return ProcessStacks((), problem="Not what py-spy writes: no list of threads.")
    found = [one for one in told if isinstance(one, dict)]
    threads = [_thread(one) for one in sorted(found, key=_after_main)[:MOST_THREADS]]
    if not threads:
        return ProcessStacks((), problem="py-spy read no thread.")
    return ProcessStacks(tuple(threads), len(found) - len(threads))


def _after_main(told: Mapping[str, Any]) -> bool:
    return told.get("thread_name") != MAIN


def _thread(told: Mapping[str, Any]) -> Thread:
    listed = told.get("frames")
    frames = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return Thread(
        name=_text(told.get("thread_name")) or f"thread {_text(told.get('os_thread_id'))}".strip(),
        main=not _after_main(told),
        active=_yes_or_no(told.get("active")),
        owns_gil=_yes_or_no(told.get("owns_gil")),
        frames=tuple(_frame(one) for one in frames[:MOST_FRAMES]),
        left_out=max(0, len(frames) - MOST_FRAMES),
    )


def _frame(told: Mapping[str, Any]) -> Frame:
    line = told.get("line")
    return Frame(
        function=_text(told.get("name")) or "?",
        file=_text(told.get("short_filename")) or _text(told.get("filename")),
        line=line if isinstance(line, int) and line > 0 else None,
        native=bool(told.get("module")),
    )


def _yes_or_no(told: object) -> bool | None:
    return told if isinstance(told, bool) else None


def _text(told: object) -> str:
    """*told* on one line and cut; empty where there is nothing to say."""
    if not isinstance(told, str | int):
        return ""
    text = " ".join(str(told).split())
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
