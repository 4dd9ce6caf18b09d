"""A process that dumps "its GPUs" when its pipe is written to, in the one way it is told.

``python -m tests.programs.fake_cuda VARIANT …`` reads the CUDA_COREDUMP_* variables as the driver
does, prints "ready", and a line for whatever it then does.
"""

import argparse
import ctypes
import gzip
import io
import os
import re
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.coredump_bytes import coredump_bytes

PIECES = 20
FULL_BUFFER = 4096  # what some drivers wait for


def set_title(title: str, *, keep_environment: bool) -> None:
    """As setproctitle does it: written over argv, and the environment behind it is wiped."""
    stat = Path("/proc/self/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    arguments, arguments_end, environment_end = int(fields[45]), int(fields[46]), int(fields[48])
    room = (arguments_end if keep_environment else environment_end) - arguments
    wiped = title.encode()[: room - 1].ljust(room, b"\0")
    ctypes.memmove(arguments, wiped, room)


def expanded(template: str) -> str:
    values = {"%h": os.uname().nodename, "%p": str(os.getpid()), "%t": str(int(time.time()))}
    return re.sub("%[hpt]", lambda word: values[word[0]], template)


class Driver:
    """The thread of the driver that waits for triggers; here it is all there is."""

    def __init__(self, variant: str, size_bytes: int, seconds: float) -> None:
        self.variant, self.size_bytes, self.seconds = variant, size_bytes, seconds
        self.pipe = Path(expanded(os.environ.get("CUDA_COREDUMP_PIPE", "corepipe.cuda.%h.%p")))
        self.file = os.environ.get("CUDA_COREDUMP_FILE", "core_%t_%h_%p.nvcudmp")

    def run(self) -> None:
        pipe = self._placed()
        say("ready")
        if self.variant == "delayed_fifo":
            sys.stdin.readline()  # CUDA starts when the test says so
            pipe = self._made()
            say("pipe")
        if pipe is not None and self.variant != "deaf":
            self._wait_for_triggers(pipe)
        while True:
            time.sleep(60)

    def _placed(self) -> int | None:
        """Put at the pipe's path what the variant has there; a descriptor of it if it is read."""
        if self.variant == "regular_file":
            self.pipe.write_text("precious")
        elif self.variant == "symlink":
            self.pipe.symlink_to(Path("victim").absolute())
        elif self.variant == "no_reader":
            os.mkfifo(self.pipe, 0o600)
        elif self.variant not in ("no_fifo", "delayed_fifo"):
            return self._made()
        return None

    def _made(self) -> int:
        if self.variant == "two_pipes":
            other = f"{self.pipe}.cuda"
            os.mkfifo(other, 0o600)
            os.open(other, os.O_RDONLY | os.O_NONBLOCK)
        os.mkfifo(self.pipe, 0o600)
        return os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)

    def _wait_for_triggers(self, pipe: int) -> None:
        received = 0
        while True:
            select.select([pipe], [], [], 1.0)
            try:
                received += len(read := os.read(pipe, 65_536))
            except BlockingIOError:
                continue
            if not read:  # the writer has closed: readable, with nothing in it
                time.sleep(0.01)
                continue
            say(f"received {len(read)}")
            if self.variant != "needs_4096" or received >= FULL_BUFFER:
                received = 0
                self._dump()

    def _dump(self) -> None:
        if self.variant in ("ignored", "write_error"):
            say("nothing")
            return
        if self.variant == "dies_first":
            os._exit(134)
        data, path = coredump_bytes(self.size_bytes), expanded(self.file)
        if self.variant == "gzip":
            data, path = gzip.compress(data, 1), f"{path}.gz"
        partial = f"{path}.partial" if self.variant == "renamed" else path
        say(f"dump {path}")
        with Path(partial).open("wb", buffering=0) as out:
            self._fill(out, data)
        if self.variant == "renamed":
            Path(partial).rename(path)
        say("closed")
        if self.variant == "abort_after":
            os._exit(134)

    def _fill(self, out: io.FileIO, data: bytes) -> None:
        if self.variant == "sparse_first":
            out.truncate(len(data))
        with suppress(OSError):  # the disk is full: a driver closes the file and goes on
            self._write(out.write, data)
        if self.variant == "truncated":
            out.truncate(len(data) * 6 // 10)

    def _write(self, write: Callable[[bytes], object], data: bytes) -> None:
        if self.variant == "held":
            data = self._grown_until_let(write, data)
        step = len(data) // PIECES + 1
        for piece in range(PIECES):
            write(data[piece * step : (piece + 1) * step])
            if piece > PIECES * 6 // 10:
                if self.variant == "dies_during":
                    os._exit(134)
                if self.variant == "stall":
                    say("stalled")
                    time.sleep(600)
                while self.variant == "endless":
                    write(data[:64])
                    time.sleep(0.01)
                if self.variant == "truncated":
                    return
            time.sleep(self.seconds / PIECES)

    def _grown_until_let(self, write: Callable[[bytes], object], data: bytes) -> bytes:
        """What is left of *data* once a file "go" lies in the folder; until then it only grows."""
        written = 0
        while written < len(data) and not Path("go").exists():
            write(data[written : written + 16])
            written += 16
            time.sleep(0.05)
        return data[written:]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("variant")
    parser.add_argument("--title", default="sglang::scheduler_TP0")
    parser.add_argument("--size-bytes", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--keep-environment", action="store_true")
    told = parser.parse_args()
    driver = Driver(told.variant, told.size_bytes, told.seconds)
    set_title(told.title, keep_environment=told.keep_environment)
    driver.run()


if __name__ == "__main__":
    main()
