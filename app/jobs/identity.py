"""The name under which this process works: the same after a restart, never that of another."""

import fcntl
import hashlib
import itertools
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from app.settings import Settings

FOLDER = "workers"


@dataclass(frozen=True, slots=True)
class Identity:
    """A place at the data folder, held by a file lock that even kill -9 gives back."""

    executor_id: str
    _lock: int

    @classmethod
    def take(cls, settings: Settings) -> Self:
        """The first free place: after a restart the one from before."""
        folder = settings.data_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        for place in itertools.count():
            lock = _locked(folder / f"{place}.lock")
            if lock is not None:
                return cls(f"{_host(settings)}-{place}", lock)
        raise AssertionError

    def release(self) -> None:
        """Give the place back."""
        os.close(self._lock)


def _locked(path: Path) -> int | None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _host(settings: Settings) -> str:
    """Workers that share a PostgreSQL may have equal data folders, each on its own host.

    A SQLite file belongs to one machine, whose name may change with each container.
    """
    folder = hashlib.sha256(str(settings.data_dir.resolve()).encode()).hexdigest()[:12]
    shared = not settings.database.startswith("sqlite")
    return f"{socket.gethostname()}-{folder}" if shared else folder
