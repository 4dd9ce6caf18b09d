"""What one py-spy said of one process at one moment, whichever way it was written down."""

from dataclasses import dataclass
from typing import NamedTuple

MAIN = "MainThread"
LONGEST_NAME = 300  # characters; a pybind11 template fills a screen
MOST_THREADS = 20_000  # of one process; a server has hundreds
MOST_FRAMES = 4_200  # of one thread; py-spy itself gives up beyond 4 096


class Frame(NamedTuple):
    """One call. *file* as py-spy cuts it; for a native one the library. *line* None: not told."""

    function: str
    file: str
    line: int | None
    native: bool

    @property
    def where(self) -> str:
        """``managers/scheduler.py:1126``."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread, newest call first. *name*, *active*, *owns_gil* None: not told."""

    id: str  # of the system where it is known, as it was written: "41200", "0x7ED3637AE700"
    name: str | None
    active: bool | None
    owns_gil: bool | None
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Dump:
    """The threads of one process. *cut*: it ends in the middle, so calls are missing."""

    pid: int | None
    title: str | None  # title or command line; JSON has none
    threads: tuple[Thread, ...]
    cut: bool = False

    @property
    def main(self) -> Thread | None:
        """The thread that the process started with, which of a rank is the one that counts."""
        pid = str(self.pid)
        named = [one for one in self.threads if one.name == MAIN]
        if named:
            return next((one for one in named if one.id == pid), named[0])
        return next((one for one in self.threads if one.id == pid), _rooted(self.threads))

    @property
    def native(self) -> bool:
        """Whether it was taken with ``--native``: only then does a stack begin in a library."""
        main = self.main
        return bool(main and main.frames and main.frames[-1].native)


def _rooted(threads: tuple[Thread, ...]) -> Thread | None:
    """The thread that runs a module, as only the main one does; None: unknown."""
    return next((one for one in threads if one.frames and is_root(one.frames[-1])), None)


def is_root(frame: Frame) -> bool:
    """Whether *frame* is what a main thread begins with."""
    return frame.function == "<module>"


def forward_thread(dump: Dump) -> Thread | None:
    """The thread that runs the model in SGLang before 0.5, where the main one only queues."""
    for thread in dump.threads:
        if any("forward_thread_func" in frame.function for frame in thread.frames):
            return thread
    return None
