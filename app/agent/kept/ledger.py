"""Who had the agent do what, and what came of it: an append-only file of JSON lines.

An action is written down before it is done and again when it is over, so that a crash in
between shows. Refused requests are counted and told now and then, so that nobody can fill it.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from app.agent.kept.lines import LineFile
from app.errors import NoSpace

REFUSED_EVERY_SECONDS = 600.0  # a line for each reason


@dataclass(frozen=True, slots=True)
class Entry:
    """One line beside its time."""

    request_id: str
    who: str  # whom the console names; "" where it names nobody
    what: str  # "stacks", "coredump", …
    process_ids: Sequence[str] = ()
    result: str = "asked"
    sha256: Sequence[str] = ()  # of the files that it gave


class Ledger:
    """The ledger of one state folder. Safe between threads."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)
        self._lock = Lock()
        self._refused: Counter[str] = Counter()
        self._told_at: dict[str, float] = {}

    def note(self, entry: Entry) -> None:
        """Write *entry* down; it is on the disk afterwards. Raises NoSpace."""
        self._lines.append({"at": _now(), **asdict(entry)})

    def refused(self, reason: str) -> None:
        """Count a request that was refused for *reason*; on a full disk the line is left out."""
        with self._lock:
            self._refused[reason] += 1
            moment = time.monotonic()
            told_at = self._told_at.get(reason)
            if told_at is not None and moment - told_at < REFUSED_EVERY_SECONDS:
                return
            self._told_at[reason] = moment
            times = self._refused.pop(reason)
        line = {"at": _now(), "what": "refused", "result": reason, "times": times}
        with suppress(NoSpace):
            self._lines.append(line, durable=False)


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
