"""Turns for work that is short: at most so many at once, and who is slow holds nobody up."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Semaphore, Timer

PATIENCE_SECONDS = 1.0


class Turns:
    """So many turns at once. A turn longer than *patience_seconds* no longer counts.

    What takes that long mostly waits for the kernel, not for a core.
    """

    def __init__(self, at_once: int, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._free = Semaphore(at_once)
        self._patience_seconds = patience_seconds

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, first come first served, and keep it for the block."""
        self._free.acquire()
        given_back = Lock()  # taken by whoever gives it back, once

        def give_back() -> None:
            if given_back.acquire(blocking=False):
                self._free.release()

        timer = Timer(self._patience_seconds, give_back)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            give_back()
