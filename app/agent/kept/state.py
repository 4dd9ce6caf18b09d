"""The agent's state folder: who it is, its key, what it has seen, did and took."""

import fcntl
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from app.agent.door import keys
from app.agent.door.nonces import Nonces
from app.agent.kept.files import AgentFiles
from app.agent.kept.ledger import Ledger
from app.errors import Conflict, Misconfigured

QUOTA_BYTES = 2 * 1024**3


class AgentState:
    """One state folder, readable by its owner alone; *key_file* may lie elsewhere."""

    def __init__(
        self, folder: Path, *, key_file: Path | None = None, quota_bytes: int = QUOTA_BYTES
    ) -> None:
        _make_private(folder)
        self.folder = folder
        self.key_file = key_file or folder / "key"
        self.agent_id = keys.agent_id(folder / "agent-id")
        self.key = keys.key(self.key_file)
        self.started_at = datetime.now(UTC)
        self.nonces = Nonces(folder / "nonces.jsonl")
        self.ledger = Ledger(folder / "ledger.jsonl")
        self.files = AgentFiles.open(folder / "files", quota_bytes=quota_bytes)
        self._lock: IO[bytes] | None = None

    def lock(self) -> bool:
        """Keep other agents out of the folder until ``unlock``; raises Conflict.

        Whether it is this call that took it.
        """
        if self._lock:
            return False
        lock = (self.folder / "lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise Conflict(
                f"Another agent runs on {self.folder}.",
                fix="Use that one, or give this one a --state-dir of its own.",
            ) from error
        self._lock = lock
        return True

    def unlock(self) -> None:
        """Let another agent have the folder."""
        if self._lock:
            self._lock.close()
            self._lock = None


def _make_private(folder: Path) -> None:
    """Raises Misconfigured where *folder* cannot be made or is open to everybody."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys.check_owner(folder)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise Misconfigured(
            f"The agent cannot use {folder}: {error.strerror}.",
            fix="Give it a folder of its own with --state-dir.",
        ) from error
