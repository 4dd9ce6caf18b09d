"""A folder of stacks: one file of py-spy's JSON for each sample, as ``stacks compare`` reads it.

A process that gave none has an empty file, and beside it one with ``.err`` that tells why: the
kind and the reason in the first line, then the fix, then a command. ``answer.json`` tells when
and how each sample was taken.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Literal

from app.agent.stacks.take import sample_name
from app.domain.counting import counted
from app.errors import Conflict
from app.protocol.messages import FileTaken, Process, Refusal, StacksAnswer


class StacksFolder:
    """Writes new files, readable by their owner alone; *told* hears of each one."""

    def __init__(self, path: Path, told: Callable[[str], None]) -> None:
        """Raises Conflict unless *path* is empty or not there."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise Conflict(f"{path} is there and not empty.", fix="Name another one with --out.")
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path, self._told = path, told

    def keep(
        self,
        data: bytes,
        *,
        name: str,
        kind: str,
        process_id: str | None = None,
        tier: Literal["T0", "T1", "T2"] = "T1",
    ) -> FileTaken:
        """*data* under its *name*."""
        self._write(name, data)
        self._told(f"{name}  {counted(len(data), 'byte')}")
        return FileTaken(
            id=token_hex(16),
            name=name,
            kind=kind,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            taken_at=datetime.now(UTC),
            process_id=process_id,
            tier=tier,
        )

    def finish(self, answer: StacksAnswer, processes: Iterable[Process]) -> None:
        """Write why there are no stacks of those that gave none, and the *answer*."""
        given = {sample.process_id for sample in answer.done}
        reasons = {refusal.process_id: refusal for refusal in reversed(answer.refused)}
        for process in processes:
            if process.id not in given and (refusal := reasons.get(process.id)):
                name = sample_name(process, 1, "plain")
                self._write(name, b"")
                self._write(f"{name}.err", error_text(refusal).encode())
        self._write("answer.json", answer.model_dump_json(indent=1).encode() + b"\n")

    def _write(self, name: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(self.path / name, flags, 0o600), "wb") as file:
            file.write(data)


def error_text(refusal: Refusal) -> str:
    """Why there are no stacks, in up to three lines."""
    lines = [f"{refusal.kind}: {refusal.reason}", refusal.fix, refusal.command]
    return "".join(f"{line}\n" for line in lines if line)
