"""What is known of each coredump, on the disk before and after everything that is done."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from app.agent.coredump.dump_watch import Baseline
from app.agent.coredump.pipes import Pipe, Uses
from app.protocol.messages import Coredump

FINAL = ("complete", "truncated", "no-file", "timed-out", "refused")
MOST_REFUSED = 256  # kept; the ledger tells of all of them


class Record(BaseModel):
    """A coredump, and what is needed to go on watching it after a restart of the agent."""

    model_config = ConfigDict(frozen=True)

    coredump: Coredump
    uses: Uses | None = None  # None: refused before anything was found
    pipe: Pipe | None = None
    baseline: Baseline | None = None
    written_bytes: int = 0  # to the pipe; noted before they are written

    @property
    def final(self) -> bool:
        return self.coredump.state in FINAL


def refused_too_many(records: Iterable[Record]) -> list[Record]:
    """The oldest for which nothing was written to any pipe, beyond those that are kept.

    Where something was written there may be a dump: such a record is never among them.
    """
    refused = [one for one in records if one.coredump.state == "refused" and not one.written_bytes]
    refused.sort(key=lambda one: one.coredump.started_at)
    return refused[: max(0, len(refused) - MOST_REFUSED)]


class Records:
    """One JSON file a coredump in *folder*; a file is always whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def load(self) -> dict[str, Record]:
        """All of them by id; what cannot be read is passed over and left where it is."""
        found = {}
        for path in sorted(self._folder.glob("*.json")):
            try:
                record = Record.model_validate(json.loads(path.read_bytes()))
            except (OSError, ValueError):
                continue
            found[record.coredump.id] = record
        return found

    def forget(self, record: Record) -> None:
        """Take its file away."""
        (self._folder / f"{record.coredump.id}.json").unlink(missing_ok=True)

    def save(self, record: Record) -> None:
        path = self._folder / f"{record.coredump.id}.json"
        partial = path.with_suffix(".partial")
        with partial.open("wb") as out:
            # Not as UTF-8: paths of a process are bytes, and half characters stand for them.
            out.write(json.dumps(record.model_dump(mode="json")).encode())
            out.flush()
            os.fsync(out.fileno())
        partial.replace(path)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
