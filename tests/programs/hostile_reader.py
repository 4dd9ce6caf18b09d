"""A reader that a file has got hold of: it does what it is told, in a process that is shut in."""

import ctypes
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.clients.confined import confined

MANY_BYTES = 600 * 1024**2


def answer(descriptor: int, asked: Mapping[str, Any]) -> object:
    doing: str = asked["doing"]
    if doing in TRIES:
        try:
            TRIES[doing]()
        except OSError as error:
            return f"refused: {error.strerror}"
        return "it worked"
    if doing == "read":
        return {"text": os.pread(descriptor, 100, 0).decode(), "cwd": str(Path.cwd())}
    return ENDS[doing]()


def send() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9))


def fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def grow() -> int:
    return len([bytearray(1024 * 1024) for _ in itertools.count()])


def spin() -> None:
    while True:
        pass


def talk() -> None:
    while True:
        sys.stdout.buffer.write(b"x" * 65_536)


def complain() -> str:
    for _ in range(2000):
        sys.stderr.write("x" * 10_000)
    return "said"


def fail() -> None:
    raise ValueError("secret words of the file")


def nonsense() -> None:
    sys.stdout.write("not json")
    sys.stdout.flush()
    os._exit(0)


TRIES: Mapping[str, Callable[[], object]] = {
    "socket": socket.socket,
    "send": send,
    "open": lambda: Path("/etc/hostname").read_bytes(),
    "write": lambda: Path("/tmp/canary-console-test").write_bytes(b"x"),
    "start": lambda: subprocess.run(["/bin/true"], check=True),
    "fork": fork,
    "change": lambda: os.write(0, b"x"),
}
ENDS: Mapping[str, Callable[[], object]] = {
    "who": lambda: {"user": os.geteuid(), "environment": sorted(os.environ)},
    "memory": lambda: len(bytearray(MANY_BYTES)),
    "many": grow,
    "cpu": spin,
    "sleep": lambda: time.sleep(600),
    "talk": talk,
    "complain": complain,
    "crash": lambda: ctypes.string_at(0),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "error": fail,
    "silent": lambda: os._exit(0),
    "nonsense": nonsense,
}

if __name__ == "__main__":
    confined(answer)
