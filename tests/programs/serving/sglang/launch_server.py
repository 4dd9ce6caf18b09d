"""Plays a server of SGLang or vLLM: real processes with real titles, and nothing in them.

Started as the real one is (``python -m sglang.launch_server --port N``), with ``PLAY`` in the
environment: a tree in JSON of ``{"title", "listens", "maps", "children", "forks", "cuda"}``.
Children are started by multiprocessing's spawn; a title is written over the arguments and the
environment. A process with "cuda" dumps its GPUs on demand, as ``tests.programs.fake_cuda`` does.
"""

import ctypes
import json
import mmap
import multiprocessing
import os
import signal
import socket
import threading
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.programs.fake_cuda import Driver

PR_SET_NAME = 15


def set_title(title: str) -> None:
    """As setproctitle does: over the arguments and on, wiping the environment."""
    for name, value in os.environ.items():
        os.environ[name] = value  # moves the variables that our own children need elsewhere
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[48])  # arg_start and env_end
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title.encode(), min(len(title.encode()), end - start))
    ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode()[:15], 0, 0, 0)


def play(node: dict[str, Any], ready: Connection | None = None) -> None:
    """Be the process that *node* describes, until a signal ends it.

    As in the real ones, the port is opened once all below are *ready*.
    """
    with ExitStack() as held:
        if node.get("title"):
            set_title(node["title"])
        if node.get("maps"):
            file = held.enter_context(Path(node["maps"]).open("rb"))
            held.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        if node.get("forks") and os.fork() == 0:
            threading.Event().wait()
        start(node.get("children", []))
        if node.get("listens"):
            held.enter_context(socket.create_server(("127.0.0.1", node["listens"])))
        if ready:
            ready.send(True)
        if node.get("cuda"):
            Driver(**node["cuda"]).run()
        while True:
            signal.pause()


def start(children: list[dict[str, Any]]) -> None:
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe(duplex=False) for _ in children]
    for child, (_, ready) in zip(children, pipes, strict=True):
        spawn.Process(target=play, args=(child, ready)).start()
    for told, _ in pipes:
        told.recv()


if __name__ == "__main__":
    play(json.loads(os.environ["PLAY"]))
