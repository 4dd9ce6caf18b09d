"""Keeps a FIFO open for reading, as a driver does: ``reads_pipe.py PATH``; says what wakes it."""

import os
import select
import sys
from pathlib import Path


def main(path: str) -> None:
    if not Path(path).exists():
        os.mkfifo(path, 0o600)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    say("ready")
    while True:
        for _, event in poll.poll():
            say(f"woken {event} {os.read(descriptor, 64)!r}")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
