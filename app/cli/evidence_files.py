"""Reading what lies under paths that a person named, bounded and without following links."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.domain.stacks.sources import StackFile
from app.errors import NotFound, TooLarge

MOST_FILES = 20_000
MOST_FILE_BYTES = 64 * 1024 * 1024
MOST_BYTES = 512 * 1024 * 1024


def files_under(paths: Sequence[Path]) -> tuple[list[StackFile], list[str]]:
    """The regular files at and under *paths*, each named as it was asked for, in their order.

    The second list holds what was passed over, with the reason. Raises NotFound for a path that
    is not there, TooLarge beyond 20 000 files or 512 MB together.
    """
    files, passed, size_bytes = [], [], 0
    for path in _found(paths):
        try:
            body = _read(path)
        except OSError as error:
            passed.append(f"{path}: {error.strerror}")
            continue
        if body is None:
            passed.append(f"{path}: no file of at most {MOST_FILE_BYTES >> 20} MiB")
            continue
        size_bytes += len(body)
        files.append(StackFile(str(path), body))
        if len(files) > MOST_FILES or size_bytes > MOST_BYTES:
            limits = f"{MOST_FILES:,} files and {MOST_BYTES >> 20} MiB"
            raise TooLarge(f"More than {limits} at once.", fix="Name fewer of them.")
    return files, passed


def _found(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise NotFound(f"There is no {path}.")
        if not path.is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(names))


def _read(path: Path) -> bytes | None:
    """The bytes of a regular file; None for anything else, and for one that is too large."""
    # Not blocking: a pipe in the folder must not hold us up before we see what it is.
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        body = file.read(MOST_FILE_BYTES + 1)
    return body if len(body) <= MOST_FILE_BYTES else None
