"""Reading hostile files in a process of their own: whatever the file does, there is an answer.

``run_apart`` never raises because of what is in a file. A reader that grows, runs on, talks too
much, crashes or fails ends as ``Refused``, with the limit that it met.
"""

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

import app
from app.clients.confined import OUT_OF_MEMORY, TOLD

_MIB = 1024 * 1024
_PIECE_BYTES = 65_536
_LOOK_SECONDS = 0.05
_MOST_ERRORS_BYTES = 65_536
# Its own copy of the package, wherever that lies; nothing of the folder it is started in.
START = (
    "import sys, runpy; sys.path.insert(0, sys.argv.pop(1));"
    " runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_ERROR_CLASS = re.compile(rb"^([A-Za-z_][A-Za-z0-9_.]{0,80})(?::|$)")

Limit = Literal["memory", "cpu", "time", "output", "crash", "failure"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one reading may use; *mapped_bytes* come on top for a reader that maps its file."""

    memory_bytes: int = 512 * _MIB
    mapped_bytes: int = 0
    cpu_seconds: int = 20
    deadline_seconds: float = 30.0
    output_bytes: int = 16 * _MIB


@dataclass(frozen=True, slots=True)
class Answered:
    """What the reader said. *offline*: it had no network at all, not only none to be reached."""

    value: Any
    seconds: float
    offline: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no answer, for a program and for a person."""

    limit: Limit
    says: str


Listener = Callable[[bytes], None]


def run_apart(
    module: str,
    descriptor: int,
    asked: Mapping[str, Any],
    limits: Limits = Limits(),
    *,
    take: Listener | None = None,
) -> Answered | Refused:
    """What *module* makes of the open file *descriptor*, which becomes its standard input.

    *module* ends in ``confined(answer)``; *asked* goes to its ``answer`` and comes from us, the
    file does not. Both have to fit into JSON.

    *take* gets each line that the reader sends before its answer, without the line end, as it
    comes; what it raises ends the reading and is raised here. Lines that were taken stand, also
    when the reading is refused later on. Without *take*, a reader has only its answer.
    """
    began = time.monotonic()
    told = orjson.dumps({"limits": asdict(limits), "asked": asked}).decode()
    root = str(Path(app.__file__).parents[1])
    process = subprocess.Popen(  # noqa: S603  (a list, no shell)
        [sys.executable, "-I", "-c", START, root, module],
        stdin=descriptor,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**_ENVIRONMENT, TOLD: told},
        cwd="/",
        start_new_session=True,
    )
    talk = _Talk(process, limits, take)
    with process:  # closes the pipes and waits
        try:
            talk.listen(began + limits.deadline_seconds)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return _outcome(talk, process.returncode, limits, time.monotonic() - began)


@dataclass
class _Talk:
    """What a reader says, kept up to its limits; *met* is the limit that was passed."""

    process: subprocess.Popen[bytes]
    limits: Limits
    take: Listener | None = None
    heard_bytes: int = 0
    out: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    met: Limit | None = None

    def listen(self, deadline: float) -> None:
        """Until both of its outputs are closed and it has ended, or a limit is met."""
        with selectors.DefaultSelector() as selector:
            for pipe, kept in ((self.process.stdout, self.out), (self.process.stderr, self.errors)):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, kept)
            while self.met is None and selector.get_map():
                if time.monotonic() > deadline:
                    self.met = "time"
                for key, _ in selector.select(_LOOK_SECONDS):
                    self._take(selector, key)
        while self.met is None and self.process.poll() is None:
            if time.monotonic() > deadline:
                self.met = "time"
            time.sleep(0.002)

    def _take(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        piece = os.read(key.fd, _PIECE_BYTES)
        if not piece:
            selector.unregister(key.fileobj)
        elif key.data is self.out:
            self.heard_bytes += len(piece)
            if self.heard_bytes > self.limits.output_bytes:
                self.met = "output"
                return
            self.out += piece
            if self.take is not None:
                self._hand_on(self.take)
        else:
            self.errors += piece
            del self.errors[:-_MOST_ERRORS_BYTES]  # the end of it says what happened

    def _hand_on(self, take: Listener) -> None:
        *lines, rest = self.out.split(b"\n")
        self.out[:] = rest
        for line in lines:
            take(bytes(line))


def _outcome(talk: _Talk, status: int, limits: Limits, seconds: float) -> Answered | Refused:
    if talk.met == "time":
        return Refused("time", f"Rejected: not read within {limits.deadline_seconds:g} s.")
    if talk.met == "output":
        return Refused("output", f"Rejected: more than {limits.output_bytes} bytes of answer.")
    if status < 0:
        return _ended_by(-status, limits)
    if status == OUT_OF_MEMORY or error_class(talk.errors) == "MemoryError":
        size = (limits.memory_bytes + limits.mapped_bytes) // _MIB
        return Refused("memory", f"Rejected: reading it takes more than {size} MiB of memory.")
    if status:
        return Refused("failure", f"Rejected: its reader broke off ({error_class(talk.errors)}).")
    try:
        answer = orjson.loads(bytes(talk.out))
        return Answered(answer["answer"], seconds, answer["offline"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return Refused("failure", "Rejected: its reader gave no answer.")


def _ended_by(number: int, limits: Limits) -> Refused:
    if number == signal.SIGXCPU:
        return Refused(
            "cpu", f"Rejected: not read within {limits.cpu_seconds} s of processor time."
        )
    if number == signal.SIGKILL:  # not by us: the kernel was out of memory, or somebody's hand
        return Refused("memory", "Rejected: its reader was killed from outside.")
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return Refused("crash", f"Rejected: its reader crashed ({name}).")


def error_class(errors: bytes | bytearray) -> str:
    """The kind of error that ended a process; never its words, which may be the file's."""
    lines = bytes(errors).strip().splitlines()
    found = _ERROR_CLASS.match(lines[-1]) if lines else None
    return found[1].decode() if found else "no reason given"
