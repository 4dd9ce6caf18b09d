"""The file that a process writes after a trigger: found, then only looked at.

It is found by what the process has open for writing, else as a new file in a likely folder. From
then on it is held open for reading, so that a rename or the end of its process does not lose it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from app.agent.coredump.dump_folders import (
    Seen,
    dump_files,
    identity,
    is_dump_name,
    likely_folders,
    open_folders,
)
from app.agent.coredump.endings import Look
from app.agent.coredump.pipes import Pipe, Uses
from app.agent.processes import proc
from app.agent.touching.rooted import open_folder, shares_our_files
from app.agent.touching.writers import writers
from app.domain.coredump_file import Shape, packed_shape, shape_of

_FOREIGN = ("not an ELF", "not a CUDA coredump")
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_MAGIC = b"\x7fELF"
_CHUNK_BYTES = 1024 * 1024


class Baseline(BaseModel):
    """What was there before the trigger: everything else is new."""

    model_config = ConfigDict(frozen=True)

    folders: list[str]
    ours: bool  # the paths mean the same to us as to the process
    seen: list[Seen]
    writing: list[str]  # what it had open for writing


@dataclass(slots=True)
class _Opened:
    descriptor: int
    folder: int | None  # a descriptor of its own, kept where its path means nothing to us
    link: str  # as the process knows it


class DumpWatch:
    """Looks for the dump of one process, and at it."""

    def __init__(self, uses: Uses, pipe: Pipe, baseline: Baseline | None = None) -> None:
        self._uses = uses
        paths = baseline.folders if baseline else likely_folders(uses, pipe.path)
        ours = baseline.ours if baseline else shares_our_files(uses.pid)
        self.folders = open_folders(uses.pid, paths, ours=ours)
        self.baseline = baseline or Baseline(
            folders=paths,
            ours=ours,
            seen=[identity(there) for _, _, there in dump_files(self.folders, uses)],
            writing=sorted(link for _, link in _written(uses.pid)),
        )
        self._seen = set(self.baseline.seen)
        self._foreign: set[tuple[int, int]] = set()
        self._opened: _Opened | None = None
        self._shape: tuple[Seen, int, Shape] | None = None
        self._unpacked: tuple[Seen, int] | None = None

    def look(self, *, alive: bool) -> Look | None:
        """The dump as it is now; None while there is none. Holes are looked for in a dead one."""
        if self._opened is None:
            # The pid of a process that has ended may be another's by now.
            self._opened = (self._in_descriptors() if alive else None) or self._in_folders()
        if self._opened is None:
            return None
        opened, path = self._opened, self.path()
        first = os.fstat(opened.descriptor)
        name = path.rpartition("/")[2]
        writing = writers(name, first.st_dev, first.st_ino, likely=self._uses.pid)
        there = os.fstat(opened.descriptor)  # after the last writer was seen: nothing moves on
        shape = self._shape_of(there, closed=not writing)
        if shape.kind in _FOREIGN:
            self._foreign.add((there.st_dev, there.st_ino))
            self._let_go()
            return None
        holes = not alive and _has_holes(opened.descriptor, there.st_size)
        return Look(path, there.st_size, shape, len(writing), holes)

    def path(self) -> str:
        """Where the dump is on this host; "" before it was seen."""
        if self._opened is None:
            return ""
        link = os.readlink(f"/proc/self/fd/{self._opened.descriptor}")  # noqa: PTH115
        link = link.removesuffix(" (deleted)")
        return link if self.baseline.ours else f"/proc/{self._uses.pid}/root{self._opened.link}"

    def readable_path(self) -> Path | None:
        """A path whose every part is what it was when the dump was found; None without a dump.

        In another mount namespace it goes through a folder that this process holds open, and is
        good for as long as it does: ``keep`` leaves it open.
        """
        if self._opened is None:
            return None
        if self.baseline.ours or self._opened.folder is None:
            return Path(self.path())
        name = self._opened.link.rpartition("/")[2]
        return Path(f"/proc/{os.getpid()}/fd/{self._opened.folder}/{name}")

    def free_bytes(self) -> int | None:
        """Free where the dump is or would go; None where that is not known."""
        with suppress(OSError):
            if self._opened is not None:
                found = os.fstatvfs(self._opened.descriptor)
                return found.f_bavail * found.f_frsize
            return self.folders[0].free_bytes if self.folders else None
        return None

    def dump_under_way(self) -> str | None:
        """A dump of the process that is being written now, whoever asked for it."""
        for _, link in _written(self._uses.pid):
            if is_dump_name(link.rpartition("/")[2], self._uses):
                return link
        return None

    def keep(self) -> None:
        """Leave the folder of the dump open when this is closed."""
        if self._opened is not None:
            self._opened.folder = None

    def close(self) -> None:
        self._let_go()
        for folder in self.folders:
            os.close(folder.descriptor)
        self.folders = []

    def _let_go(self) -> None:
        if self._opened is None:
            return
        os.close(self._opened.descriptor)
        if self._opened.folder is not None:
            os.close(self._opened.folder)
        self._opened = self._shape = None

    def _in_descriptors(self) -> _Opened | None:
        known = set(self.baseline.writing)
        for number, link in _written(self._uses.pid):
            if link not in known and (opened := self._by_number(number, link)):
                return opened
        return None

    def _by_number(self, number: int, link: str) -> _Opened | None:
        descriptor = _open_regular(f"/proc/{self._uses.pid}/fd/{number}")
        if descriptor is None:
            return None
        there = os.fstat(descriptor)
        head = _shape_of(descriptor, there.st_size)
        named = is_dump_name(link.rpartition("/")[2], self._uses)
        by_content = head.kind in ("complete", "incomplete") and _is_elf(descriptor)
        if (there.st_dev, there.st_ino) in self._foreign or not (named or by_content):
            os.close(descriptor)
            return None
        return _Opened(descriptor, self._folder_of(link), link)

    def _folder_of(self, link: str) -> int | None:
        if not self.baseline.ours:
            with suppress(OSError):
                return open_folder(self._uses.pid, link.rpartition("/")[0])
        return None

    def _in_folders(self) -> _Opened | None:
        for folder, name, there in dump_files(self.folders, self._uses):
            if identity(there) in self._seen or (there.st_dev, there.st_ino) in self._foreign:
                continue
            with suppress(OSError):
                descriptor = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder.descriptor)
                kept = None if self.baseline.ours else os.dup(folder.descriptor)
                return _Opened(descriptor, kept, f"{folder.path.rstrip('/')}/{name}")
        return None

    def _shape_of(self, there: os.stat_result, *, closed: bool) -> Shape:
        """Told again only when the file has changed; a compressed one is unpacked once closed."""
        assert self._opened is not None
        descriptor = self._opened.descriptor
        now = (identity(there), there.st_size)
        if self._shape is None or self._shape[:2] != now:
            self._shape = (*now, _shape_of(descriptor, there.st_size))
        shape = self._shape[2]
        if shape.kind == "gzip" and closed and self._unpacked != now:
            shape, self._unpacked = packed_shape(_pieces(descriptor)), now
            self._shape = (*now, shape)
        return shape


def _written(pid: int) -> Iterator[tuple[int, str]]:
    """Files that *pid* has open for writing: descriptor and path."""
    for found in proc.descriptors(pid):
        writes = found.flags is not None and found.flags & os.O_ACCMODE != os.O_RDONLY
        if writes and found.link.startswith("/") and not found.link.startswith("/dev/"):
            yield found.number, found.link.removesuffix(" (deleted)")


def _open_regular(path: str) -> int | None:
    """*path* for reading where it is a regular file: looked at before it is opened."""
    with suppress(OSError):
        held = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(held).st_mode):
                return os.open(f"/proc/self/fd/{held}", _READ)
        finally:
            os.close(held)
    return None


def _shape_of(descriptor: int, size_bytes: int) -> Shape:
    return shape_of(size_bytes, lambda offset, length: os.pread(descriptor, length, offset))


def _is_elf(descriptor: int) -> bool:
    return os.pread(descriptor, len(_MAGIC), 0) == _MAGIC


def _pieces(descriptor: int) -> Iterator[bytes]:
    offset = 0
    while piece := os.pread(descriptor, _CHUNK_BYTES, offset):
        yield piece
        offset += len(piece)


def _has_holes(descriptor: int, size_bytes: int) -> bool:
    """Whether parts were never written; False where the file system does not tell."""
    with suppress(OSError):
        return os.lseek(descriptor, 0, os.SEEK_HOLE) < size_bytes
    return False
