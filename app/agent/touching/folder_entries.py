"""The regular files of a folder and of its folders, one level deep, without following a link."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from app.protocol.harmless import LATEST_SECONDS

MAX_ENTRIES = 2000  # of one folder
MAX_FOLDERS = 64
_PLAIN_NAME = re.compile(r"[\w.-]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """A regular file called *name* in the folder *below*, "" for the one that was opened."""

    below: str
    name: str
    device: int
    inode: int
    owner: int
    size_bytes: int
    changed_seconds: float


def entries(folder: int) -> Iterator[Entry]:
    """The files in the open *folder*, then those one level below; odd names are left out."""
    below = []
    for name, found in _listed(folder):
        if stat.S_ISREG(found.st_mode):
            yield _entry("", name, found)
        elif stat.S_ISDIR(found.st_mode):
            below.append(name)
    for name in below[:MAX_FOLDERS]:
        with suppress(OSError):
            yield from _files_below(folder, name)


def _files_below(folder: int, below: str) -> Iterator[Entry]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(below, flags, dir_fd=folder)
    try:
        for name, found in _listed(opened):
            if stat.S_ISREG(found.st_mode):
                yield _entry(below, name, found)
    finally:
        os.close(opened)


def _listed(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as listing:
        names = [one.name for one in islice(listing, MAX_ENTRIES)]
    for name in names:
        if _PLAIN_NAME.fullmatch(name):
            with suppress(OSError):  # gone since, or not for us
                yield name, os.stat(name, dir_fd=folder, follow_symlinks=False)


def _entry(below: str, name: str, found: os.stat_result) -> Entry:
    return Entry(
        below,
        name,
        found.st_dev,
        found.st_ino,
        found.st_uid,
        found.st_size,
        min(max(found.st_mtime, 0.0), LATEST_SECONDS),  # anybody may set any
    )
