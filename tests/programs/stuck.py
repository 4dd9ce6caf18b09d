"""A process that is stuck in one known way: ``python stuck.py HOW [COUNT]``; says "ready".

Runs under any Python, for any user: nothing but the standard library.
"""

import os
import sys
import tempfile
import threading
import time
from pathlib import Path


def busy_loop() -> None:
    ready()
    while True:
        pass


def waits_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    ready()
    lock.acquire()


def many_threads(count: int) -> None:
    for number in range(count):
        threading.Thread(target=threading.Event().wait, name=f"worker-{number}").start()
    waits_for_a_lock()


def deep(count: int) -> None:
    if count:
        deep(count - 1)
    else:
        waits_for_a_lock()


def asleep_in_the_kernel() -> None:
    """State D: its child waits for a writer before exec, and until then the parent sleeps."""
    pipe = Path(tempfile.mkdtemp()) / "nobody-writes"
    os.mkfifo(pipe)
    ready()
    opening = [(os.POSIX_SPAWN_OPEN, 0, str(pipe), os.O_RDONLY, 0)]
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=opening)


def asleep_beside_a_busy_thread() -> None:
    threading.Thread(target=_spin, daemon=True).start()
    asleep_in_the_kernel()


def zombie() -> None:
    """The pid of a child that has ended and is not waited for follows "ready"."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    time.sleep(0.1)
    ready(str(child))
    time.sleep(1000)


def _spin() -> None:
    while True:
        pass


def ready(more: str = "") -> None:
    sys.stdout.write(f"ready {more}\n")
    sys.stdout.flush()


WAYS = {
    "busy": busy_loop,
    "lock": waits_for_a_lock,
    "threads": many_threads,
    "deep": deep,
    "asleep": asleep_in_the_kernel,
    "half-asleep": asleep_beside_a_busy_thread,
    "zombie": zombie,
}


def main(how: str, *count: str) -> None:
    sys.setrecursionlimit(100_000)
    threading.stack_size(16 * 1024 * 1024 if how == "deep" else 256 * 1024)
    WAYS[how](*map(int, count))  # type: ignore[operator]


if __name__ == "__main__":
    main(*sys.argv[1:])
