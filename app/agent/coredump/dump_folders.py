"""The folders in which a coredump of one process may appear, and the files of that name in them."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.agent.coredump.pipes import Uses
from app.agent.touching.rooted import open_folder
from app.domain.cuda_settings import folder_of, name_pattern

MAX_ENTRIES = 20_000  # of one folder
_SGLANG_FOLDER = "/tmp/sglang_cuda_coredumps"  # noqa: S108  (of SGLANG_CUDA_COREDUMP=1)
_DUMP_WORDS = re.compile(r"core|cuda|nvcudmp", re.IGNORECASE)
_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Seen = tuple[int, int, int]  # device, inode, time of the last change in ns


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder held open, so that it can be read after its process has ended."""

    descriptor: int
    path: str  # as the process knows it

    @property
    def free_bytes(self) -> int:
        found = os.fstatvfs(self.descriptor)
        return found.f_bavail * found.f_frsize


def likely_folders(uses: Uses, pipe_path: str) -> list[str]:
    """Where a dump of this process may appear, the likeliest first.

    The driver's default is the working folder; it makes no folder itself.
    """
    working = _working_folder(uses.pid) or "/"
    told = None
    if uses.settings.file is not None:
        told = folder_of(uses.settings.file, host=uses.host, pid=uses.inner_pid)
    paths = [
        None if told is None else os.path.join(working, told),  # noqa: PTH118
        working,
        os.path.dirname(pipe_path),  # noqa: PTH120  (a path of another process, not of ours)
        _SGLANG_FOLDER,
    ]
    return list(dict.fromkeys(path for path in paths if path))


def open_folders(pid: int, paths: Sequence[str], *, ours: bool) -> list[Folder]:
    """Those of *paths* that can be opened; *ours*: they mean the same without the process."""
    found = []
    for path in paths:
        with suppress(OSError):
            opened = os.open(path, _READ_FOLDER) if ours else open_folder(pid, path)
            found.append(Folder(opened, path))
    return found


def is_dump_name(name: str, uses: Uses) -> bool:
    """Whether a coredump of this process may be called *name*: by its template, or by its pid."""
    bare = name.removesuffix(".gz")
    if uses.settings.file is not None:
        pattern = name_pattern(uses.settings.file, host=uses.host, pid=uses.inner_pid)
        if pattern.fullmatch(name) or pattern.fullmatch(bare):
            return True
    with_pid = re.search(rf"(?<!\d){uses.inner_pid}(?!\d)", name)
    return with_pid is not None and _DUMP_WORDS.search(name) is not None


def dump_files(
    folders: Sequence[Folder], uses: Uses
) -> Iterator[tuple[Folder, str, os.stat_result]]:
    """Regular files of the process's user that may be a dump of it, by their names."""
    for folder in folders:
        for name in _names(folder):
            if not is_dump_name(name, uses):
                continue
            with suppress(OSError):
                there = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
                if stat.S_ISREG(there.st_mode) and there.st_uid == uses.owner:
                    yield folder, name, there


def identity(there: os.stat_result) -> Seen:
    """What differs once a file is new, or written to again."""
    return there.st_dev, there.st_ino, there.st_mtime_ns


def _names(folder: Folder) -> list[str]:
    with suppress(OSError), os.scandir(folder.descriptor) as entries:
        return [entry.name for entry, _ in zip(entries, range(MAX_ENTRIES), strict=False)]
    return []


def _working_folder(pid: int) -> str | None:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
    return None
