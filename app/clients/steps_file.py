"""The file in which a reduction writes down what it does, and from which it goes on."""

import fcntl
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import orjson

from app.domain.replay.judging import Says
from app.domain.replay.steps import known, read
from app.errors import Conflict, Rejected


class StepsFile:
    """JSON lines at *path*, readable by its owner alone; one reduction at a time has it.

    *known* are the verdicts that were there, by key. *start* is what makes it this reduction's.
    Raises Conflict for the steps of another one, or while another process writes them.
    """

    def __init__(self, path: Path, start: Mapping[str, Any]) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Rejected(f"{path} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.known = self._taken_up(start)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise Conflict(f"Another reduction is writing {path}.") from error
        except Conflict:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def note(self, step: str, **told: Any) -> None:  # noqa: ANN401  (fields of a line)
        """Write one step down; it stands from then on, even when this process is killed."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = orjson.dumps({"step": step, "at": at, **told}) + b"\n"
        os.write(self._descriptor, line)

    def _taken_up(self, start: Mapping[str, Any]) -> dict[str, Says]:
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            text = file.read()
        os.lseek(self._descriptor, 0, os.SEEK_END)
        if text and not text.endswith(b"\n"):
            os.write(self._descriptor, b"\n")  # the last line was torn
        found = known(read(text), start)
        self.note("start", of=start) if not text else self.note("resume", known=len(found))
        return found
