"""The file of ``replay --out``: a line a request, as it ends."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import orjson

from app.domain.counting import counted
from app.errors import Conflict, NoSpace, Rejected


class OutFile:
    """New and readable by its owner alone: it has identifiers of what people asked.

    Where the disk takes no more, *why_full* says so: the replay is to stop then.
    """

    def __init__(self, path: Path) -> None:
        self.why_full: str | None = None
        self._path, self._lost = path, 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except FileExistsError as error:
            raise Conflict(f"{path} is there already.", fix="Name another one.") from error
        except OSError as error:
            raise Rejected(f"{path} cannot be written: {error.strerror}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def write(self, told: Mapping[str, Any]) -> None:
        """A line of JSON, whole or not at all; once one is missing, no other follows it."""
        line = orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)
        if self.why_full is None:
            self._append(line)
        self._lost += self.why_full is not None

    def complain(self) -> None:
        """Raises NoSpace where lines are missing."""
        if self.why_full is not None:
            raise NoSpace(
                f"{self._path} could not be written any more: {self.why_full}.",
                why=f"{counted(self._lost, 'line')} are missing in it. The verdict counts them.",
            )

    def _append(self, line: bytes) -> None:
        whole = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        try:
            if os.write(self._descriptor, line) < len(line):
                self.why_full = "no space is left"
        except OSError as error:
            self.why_full = error.strerror
        if self.why_full is not None:
            os.ftruncate(self._descriptor, whole)
