"""Who has a tool on which process: one at a time, as two debuggers on a process break both.

Two agents, or an agent and the command line, see each other's tools by a turn of the host.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from app.agent.processes.proc import own_namespace, read_status
from app.agent.touching.host_lock import HostLock, is_taken
from app.agent.touching.pinned import effective_uid
from app.errors import Conflict

ELSEWHERE = "Another agent or command line"


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
                raise _taken_by(holder)
            turn = HostLock(_name(pid), taken=_taken_by(ELSEWHERE), owner=_owner(pid))
            self._held[pid] = what
        try:
            yield
        finally:
            with self._lock:
                del self._held[pid]
                turn.release()

    def holder(self, pid: int) -> str | None:
        """What is on *pid* now; None for nothing of ours."""
        with self._lock:
            holder = self._held.get(pid)
        return holder or (ELSEWHERE if is_taken(_name(pid), owner=_owner(pid)) else None)


def _taken_by(holder: str) -> Conflict:
    return Conflict(
        f"{holder} is on this process already.", fix="Wait until it is done, then ask again."
    )


def _owner(pid: int) -> int | None:
    return effective_uid(read_status(pid))


def _name(pid: int) -> str:
    """Of the turn on *pid*; containers that share a network count their processes apart."""
    return f"incident-console-on-{pid}-in-{own_namespace('pid') or 'pid'}"
