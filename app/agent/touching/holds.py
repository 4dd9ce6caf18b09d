"""Who has a tool on which process: one at a time, as two debuggers on a process break both."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from app.errors import Conflict


class Holds:
    """The processes that a tool of this agent is on; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[int, str] = {}

    @contextmanager
    def hold(self, pid: int, what: str) -> Iterator[None]:
        """Keep *pid* for *what* ("py-spy") inside the block.

        Raises Conflict, naming the holder, where it is kept already: nobody waits, since what
        is asked for later would show another moment than the one meant.
        """
        with self._lock:
            if (holder := self._held.get(pid)) is not None:
                raise Conflict(
                    f"{holder} is on this process already.",
                    fix="Wait until it is done, then ask again.",
                )
            self._held[pid] = what
        try:
            yield
        finally:
            with self._lock:
                del self._held[pid]

    def holder(self, pid: int) -> str | None:
        """What is on *pid* now; None for nothing of ours."""
        with self._lock:
            return self._held.get(pid)
