"""Commands that a person gave for checking and restarting a target: no shell, bounded, ended.

Each runs in a session of its own, with what it starts. They end with us, even when we are killed.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread, current_thread, main_thread
from typing import IO

from app.clients.stop_signals import handled
from app.errors import Misconfigured

MOST_KEPT_BYTES = 4096  # of what a command prints, its end
_PIECE_BYTES = 4096
_STOP_SECONDS = 5.0
_LAST_WORDS_SECONDS = 1.0
_LOOK_SECONDS = 0.02
# Becomes the command, which the kernel then ends with its parent (PR_SET_PDEATHSIG, SIGKILL).
_STUB = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9, 0, 0, 0);"
    " os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execvp(sys.argv[2], sys.argv[2:])"
)

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. *status* None: it was not done in time; negative: by that signal."""

    status: int | None
    printed: str
    seconds: float


def words_of(command: str, flag: str) -> Words:
    """The words of *command*, which came with *flag*. Raises Misconfigured; nothing is run."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Misconfigured(f"{flag} is no command: {error}.") from error
    if not words:
        raise Misconfigured(f"{flag} is empty.")
    found = shutil.which(words[0])
    if found is None:
        raise Misconfigured(
            f"{flag}: there is no program {words[0]!r} here.",
            why="The command is not run by a shell.",
            fix="For pipes and the like: sh -c '…'.",
        )
    return (os.path.abspath(found), *words[1:])  # noqa: PTH100  (as it is called, links and all)


class Command:
    """*words* while they run; what they print is read all the time, and its end is kept."""

    def __init__(self, words: Words, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  (a list, no shell)
            [sys.executable, "-I", "-S", "-c", _STUB, str(os.getpid()), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._kept: deque[bytes] = deque(maxlen=MOST_KEPT_BYTES // _PIECE_BYTES + 1)
        self._reading = Thread(target=self._read, args=[self._process.stdout], daemon=True)
        self._reading.start()

    def status(self) -> int | None:
        """Its exit status; None while it runs. It stays unreaped, so that its number stays its own.

        What is ended by that number is then never another's.
        """
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        told = os.waitid(os.P_PID, self._process.pid, flags)
        if told is None:
            return None
        return told.si_status if told.si_code == os.CLD_EXITED else -told.si_status

    def wait(self, seconds: float) -> int | None:
        """Its exit status once it ended; None when it did not within *seconds*."""
        until = time.monotonic() + seconds
        while (status := self.status()) is None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return status

    def printed(self) -> str:
        """The end of what it printed."""
        return b"".join(self._kept)[-MOST_KEPT_BYTES:].decode("utf-8", "replace")

    def end(self) -> None:
        """End it and all of its session that is left: first by asking, then by force."""
        if self._process.returncode is not None:
            return
        self._tell(signal.SIGTERM)
        self.wait(_STOP_SECONDS)
        self._tell(signal.SIGKILL)
        self._process.wait()
        self._reading.join(_LAST_WORDS_SECONDS)  # others may hold the pipe open

    def _tell(self, sign: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sign)

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while piece := os.read(pipe.fileno(), _PIECE_BYTES):
                self._kept.append(piece)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals to stop are heard afterwards: what is started here is known by then, and ended."""
    heard: list[int] = []
    if current_thread() is not main_thread():  # only the main one hears them
        yield
        return
    try:
        with handled(lambda number, _: heard.append(number)):
            yield
    finally:
        for number in heard:
            signal.raise_signal(number)


def run(words: Sequence[str], environment: Mapping[str, str], seconds: float) -> Ended:
    """Run *words* to their end, or end them after *seconds*."""
    start = time.monotonic()
    command = None
    try:
        with undisturbed():
            command = Command(tuple(words), environment)
        status = command.wait(seconds)
    finally:
        if command is not None:
            command.end()
    return Ended(status, command.printed(), time.monotonic() - start)
