"""Programs that the agent runs: no shell, a clean environment, a deadline that is kept.

Whatever a tool does, ``run_tool`` returns: its output is drained and capped, and at the
deadline it and its children are killed. Failure to start is an answer too, not an exception.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

MAX_OUTPUT_BYTES = 8 * 1024 * 1024
LOOK_SECONDS = 0.02  # between two looks at deadline, cancellation and exit
AFTER_EXIT_SECONDS = 0.5  # a child of the tool may hold the pipes open for ever
AFTER_KILL_SECONDS = 2.0  # even SIGKILL waits for a process that sleeps in the kernel
PIECE_BYTES = 65_536
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "RUST_BACKTRACE": "0",
}
NOT_FOUND, NOT_ALLOWED = 127, 126  # as a shell says it


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What came of one call."""

    argv: tuple[str, ...]
    status: int | None  # negative: ended by that signal; None: not even SIGKILL ended it
    out: bytes
    err: bytes
    seconds: float
    timed_out: bool = False  # killed at the deadline, or because the caller gave up
    cut: bool = False  # there was more output than was kept


def find_tool(name: str) -> str | None:
    """The absolute path of *name*: beside this interpreter first, then on PATH; None: absent."""
    beside = Path(sys.executable).parent / name
    if os.access(beside, os.X_OK) and beside.is_file():
        return str(beside)
    return shutil.which(name)


def run_tool(
    argv: Sequence[str],
    *,
    deadline_seconds: float,
    max_bytes: int = MAX_OUTPUT_BYTES,
    cancel: Event | None = None,
) -> ToolRun:
    """Run *argv* to its end, at most *deadline_seconds* long, in a session of its own.

    Keeps *max_bytes* of each output; the rest is read and dropped, so that the tool never
    blocks on us. *cancel* ends it early, as the deadline does.
    """
    began = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603  (a list, no shell)
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return _not_started(argv, error)
    with closing(_Drain(process, max_bytes)) as drain:
        on_time = drain.until_exit(began + deadline_seconds, cancel)
        status = _reaped(process)
        drain.rest(time.monotonic() + AFTER_EXIT_SECONDS)
    return ToolRun(
        tuple(argv),
        status,
        bytes(drain.out),
        bytes(drain.err),
        time.monotonic() - began,
        timed_out=not on_time,
        cut=drain.cut,
    )


def _not_started(argv: Sequence[str], error: OSError) -> ToolRun:
    status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_ALLOWED
    says = "command not found" if status == NOT_FOUND else f"cannot be run: {error.strerror}"
    return ToolRun(tuple(argv), status, b"", f"{argv[0]}: {says}".encode(), 0.0)


def _reaped(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status, after its whole session was killed; None where it outlives SIGKILL.

    The group is killed before its leader is reaped: until then its number is not given away.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.wait(AFTER_KILL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


class _Drain:
    """Both outputs of a running tool, read as they come and kept up to a limit."""

    def __init__(self, process: subprocess.Popen[bytes], max_bytes: int) -> None:
        self.out, self.err = bytearray(), bytearray()
        self.cut = False
        self._pid = process.pid
        self._max_bytes = max_bytes
        self._pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
        self._selector = selectors.DefaultSelector()
        for pipe, kept in zip(self._pipes, (self.out, self.err), strict=True):
            self._selector.register(pipe, selectors.EVENT_READ, kept)

    def until_exit(self, deadline: float, cancel: Event | None) -> bool:
        """Read until the tool has ended: True; False at *deadline* or once *cancel* is set."""
        while not self._has_ended():
            if time.monotonic() > deadline or (cancel is not None and cancel.is_set()):
                return False
            self._read_for(LOOK_SECONDS)
        return True

    def rest(self, deadline: float) -> None:
        """Read what is still in the pipes, to their end or to *deadline*."""
        while self._selector.get_map() and time.monotonic() < deadline:
            self._read_for(LOOK_SECONDS)

    def close(self) -> None:
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _read_for(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            piece = os.read(key.fd, PIECE_BYTES)
            if not piece:
                self._selector.unregister(key.fileobj)
            self._keep(key.data, piece)

    def _keep(self, kept: bytearray, piece: bytes) -> None:
        room = self._max_bytes - len(kept)
        kept += piece[:room]
        self.cut = self.cut or len(piece) > room
