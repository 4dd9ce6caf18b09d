"""Outcomes in a file as soon as they are measured, by the processes that measure them.

On their way into the store they are in memory for a part of a second. What is left here once a
replay is cut off was on its way as the console was killed, or the store took nothing.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import orjson

from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Recorded
from app.errors import Conflict

_LOOK_SECONDS = 0.05
_FOLDER, _NAME = "replays", "trial-{}.jsonl"


class Journal:
    """Open from when it is made until it is left; readable by its owner alone, held by one."""

    def __init__(self, path: Path, *, wait_seconds: float = 0.0) -> None:
        """Raises Conflict where another holds it for longer, or what that started still sends."""
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._path = path
        until = time.monotonic() + wait_seconds
        while (held := _held(path)) is None:
            if time.monotonic() >= until:
                raise Conflict("An earlier attempt at this trial is still being ended.")
            time.sleep(_LOOK_SECONDS)
        self.descriptor: int = held

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def left(self) -> Iterator[tuple[Outcome, Recorded]]:
        """What was measured, and how it was recorded; a line that was cut off is none."""
        for line in self._path.read_bytes().splitlines():
            with suppress(ValueError, TypeError):  # TypeError: another release wrote it
                outcome, recorded = orjson.loads(line)
                yield Outcome(**outcome), Recorded(**recorded)

    def remove(self) -> None:
        """All of it is in the store."""
        self._path.unlink(missing_ok=True)


def journal_of(data_folder: Path, trial_id: int) -> Path:
    """Where the journal of a trial is, on the machine that sends it."""
    return data_folder / _FOLDER / _NAME.format(trial_id)


def journals_in(data_folder: Path) -> dict[int, Path]:
    """The journals that are there, by the numbers of their trials."""
    before, after = _NAME.split("{}")
    found = (data_folder / _FOLDER).glob(_NAME.format("*"))
    named = {one.name.removeprefix(before).removesuffix(after): one for one in found}
    return {int(number): path for number, path in named.items() if number.isdecimal()}


def write_down(descriptor: int, outcome: Outcome, recorded: bytes) -> None:
    """Append *outcome*; where the disk takes nothing it is in memory alone, as before.

    The line begins with its break, so that one that the disk cut off spoils no other.
    """
    with suppress(OSError):
        os.write(descriptor, b"\n[%s,%s]" % (orjson.dumps(outcome), recorded))


def _held(path: Path) -> int | None:
    """A descriptor of the file at *path*, which is now ours alone; None: it is another's yet."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):  # else it was removed meanwhile
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
