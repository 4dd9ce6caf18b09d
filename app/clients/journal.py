"""Outcomes in a file as soon as they are measured, by the processes that measure them.

On their way into the store they are in memory for a part of a second. What is left here when a
trial is gone on with was on its way as the console was killed.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from app.domain.replay.outcomes import Outcome


class Journal:
    """Open from when it is made until it is left; readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self.descriptor = os.open(path, flags, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        os.close(self.descriptor)

    def left(self) -> Iterator[Outcome]:
        """What an earlier attempt has measured; a line that was cut off is none."""
        for line in self._path.read_bytes().splitlines():
            with suppress(ValueError, TypeError):  # TypeError: another release wrote it
                yield Outcome(**orjson.loads(line))

    def remove(self) -> None:
        """All of it is in the store."""
        self._path.unlink(missing_ok=True)


def write_down(descriptor: int, outcome: Outcome) -> None:
    """Append *outcome*; where the disk takes nothing it is in memory alone, as before."""
    with suppress(OSError):
        os.write(descriptor, orjson.dumps(outcome, option=orjson.OPT_APPEND_NEWLINE))
