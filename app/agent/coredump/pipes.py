"""The coredump pipe of a CUDA process: found among what it reads, and written to once.

The driver keeps its FIFO open for reading, so the pipe is looked for in ``/proc/PID/fd``; no name
or namespace can mislead that. A template only says which of the target's own pipes is meant.
Nothing is written unless the very inode that is open for writing is a FIFO of the target's user.
"""

import errno
import fcntl
import os
import re
import stat
import struct
import termios
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from app.agent.coredump import refusals
from app.agent.processes import proc
from app.agent.touching.rooted import open_folder
from app.domain.cuda_settings import DEFAULT_PIPE, CudaSettings, name_pattern, path_of
from app.errors import Conflict

TRIGGER = b"1"
RETRY = b"1" * 4096  # some drivers act only once a buffer is full; at most PIPE_BUF, so all or none
_NAME = re.compile(r"corepipe|cuda", re.IGNORECASE)
_TORCH_RECORDER = ".pipe"  # torch's flight recorder ends its FIFOs so
_DELETED = " (deleted)"
_WITH_PID = re.compile(r"corepipe[._].*[._](\d+)")  # the driver's own names end in a pid
_KINDS = {stat.S_IFREG: "a regular file", stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder"}


@dataclass(frozen=True, slots=True)
class Pipe:
    """A FIFO that the process *pid* reads through its descriptor *number*."""

    pid: int
    number: int
    path: str  # as the process knows it
    device: int
    inode: int
    owner: int
    found_by: Literal["descriptor", "template"]


@dataclass(frozen=True, slots=True)
class Uses:
    """A process as its pipe is looked for: its user, and its pid where the driver runs."""

    pid: int
    inner_pid: int
    owner: int
    host: str | None  # as it knows it; None where that cannot be told
    settings: CudaSettings


def find_pipe(uses: Uses) -> Pipe:
    """The one pipe that triggers a coredump of this process; raises Conflict that says why not."""
    if proc.links(uses.pid) is None:
        raise refusals.no_permission(uses.pid, uses.owner)
    links = _read_only(uses.pid)
    found = _pipes(uses, _named(links, uses), "descriptor")
    if not found:
        found = _pipes(uses, _by_template(links, uses), "template")
    if not found:
        raise _why_none(uses)
    if len(found) > 1:
        raise refusals.several_pipes([pipe.path for pipe in found])
    if found[0].owner != uses.owner:
        raise refusals.pipe_of_another(found[0].path, found[0].owner, uses.owner)
    return found[0]


def write(pipe: Pipe, message: bytes, *, only_if_empty: bool = False) -> None:
    """Write *message* to *pipe* without ever waiting; raises Conflict with nothing written.

    *only_if_empty*: where an earlier message is unread, the driver does not read. The pipe is
    opened once for both, as each opening and closing is an end of file to its reader.
    """
    opened = _open(pipe)
    try:
        if only_if_empty and _unread_bytes(opened):
            raise refusals.pipe_full(pipe.path)
        if os.write(opened, message) != len(message):
            raise refusals.pipe_full(pipe.path)
    except BlockingIOError as error:
        raise refusals.pipe_full(pipe.path) from error
    except BrokenPipeError as error:
        raise refusals.no_reader(pipe.path) from error
    finally:
        os.close(opened)


def _unread_bytes(opened: int) -> int:
    answer = fcntl.ioctl(opened, termios.FIONREAD, b"\0" * 4)
    return int(struct.unpack("i", answer)[0])


def _read_only(pid: int) -> dict[int, str]:
    """What the process has open for reading only and under a path, by descriptor."""
    return {
        open_file.number: open_file.link
        for open_file in proc.descriptors(pid)
        if open_file.link.startswith("/")
        and open_file.flags is not None
        and open_file.flags & os.O_ACCMODE == os.O_RDONLY
    }


def _named(links: dict[int, str], uses: Uses) -> dict[int, str]:
    """Links whose name is one that drivers give, and not that of another process's pipe."""
    return {
        number: link
        for number, link in links.items()
        if _NAME.search(name := _name_of(link))
        and not name.endswith(_TORCH_RECORDER)
        and not _is_of_another(name, uses)
    }


def _is_of_another(name: str, uses: Uses) -> bool:
    """Whether the name tells another pid: a fork keeps the pipe of its parent open."""
    match = _WITH_PID.fullmatch(name)
    return match is not None and int(match[1]) not in (uses.pid, uses.inner_pid)


def _by_template(links: dict[int, str], uses: Uses) -> dict[int, str]:
    """Links that the configured template names; where that is one path, only of its inode."""
    if uses.settings.pipe is None:
        return {}
    pattern = name_pattern(uses.settings.pipe, host=uses.host, pid=uses.inner_pid)
    meant = {number: link for number, link in links.items() if pattern.fullmatch(_name_of(link))}
    if not meant or path_of(uses.settings.pipe, host=uses.host, pid=uses.inner_pid) is None:
        return meant
    there = _look_at_template(uses)
    return {
        number: link
        for number, link in meant.items()
        if there and _same(there, _look(uses.pid, number))
    }


def _pipes(
    uses: Uses, links: dict[int, str], found_by: Literal["descriptor", "template"]
) -> list[Pipe]:
    """The FIFOs among *links*, each inode once."""
    found: dict[tuple[int, int], Pipe] = {}
    for number, link in links.items():
        there = _look(uses.pid, number)
        if there is not None and stat.S_ISFIFO(there.st_mode):
            pipe = Pipe(
                uses.pid,
                number,
                link.removesuffix(_DELETED),
                there.st_dev,
                there.st_ino,
                there.st_uid,
                found_by,
            )
            found.setdefault((pipe.device, pipe.inode), pipe)
    return list(found.values())


def _why_none(uses: Uses) -> Conflict:
    """What stands where the pipe should be; nothing is opened for it."""
    template = uses.settings.pipe or DEFAULT_PIPE
    path = path_of(template, host=uses.host, pid=uses.inner_pid) or template
    there = _look_at_template(uses)
    if there is not None and not stat.S_ISFIFO(there.st_mode):
        found = _KINDS.get(stat.S_IFMT(there.st_mode), "no pipe")
        return refusals.not_a_pipe(path, found)
    if there is not None:
        return refusals.no_reader(path)
    libraries = proc.mapped(uses.pid, "libcuda.so", "libamdhip64", "libhsa-runtime64")
    if libraries and "libcuda.so" not in libraries:
        return refusals.not_cuda(uses.pid)
    if uses.settings.enabled is False:
        return refusals.not_enabled(uses.pid)
    return refusals.pipe_missing(
        uses.pid, cuda_loaded=None if libraries is None else bool(libraries)
    )


def _look_at_template(uses: Uses) -> os.stat_result | None:
    """What is at the template's path in the target's own files, no symbolic link followed."""
    path = path_of(uses.settings.pipe or DEFAULT_PIPE, host=uses.host, pid=uses.inner_pid)
    if path is None:
        return None
    split = PurePosixPath(path)
    folder = str(split.parent) if path.startswith("/") or split.parent.name else ""
    with suppress(OSError):
        opened = open_folder(uses.pid, folder)
        try:
            return os.stat(split.name, dir_fd=opened, follow_symlinks=False)
        finally:
            os.close(opened)
    return None


def _look(pid: int, number: int) -> os.stat_result | None:
    with suppress(OSError):
        return os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116  (through the magic link)
    return None


def _same(one: os.stat_result, other: os.stat_result | None) -> bool:
    return other is not None and (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _open(pipe: Pipe) -> int:
    """*pipe* open for writing. It is first held without opening it, so that what is opened is what
    was looked at: opening a device or a file, even to close it again, could change it.
    """
    try:
        held = os.open(f"/proc/{pipe.pid}/fd/{pipe.number}", os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot_open(pipe, error) from error
    try:
        there = os.fstat(held)
        identity = (there.st_dev, there.st_ino, there.st_uid)
        if not stat.S_ISFIFO(there.st_mode) or identity != (pipe.device, pipe.inode, pipe.owner):
            raise refusals.pipe_changed(pipe.path)
        return os.open(f"/proc/self/fd/{held}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot_open(pipe, error) from error
    finally:
        os.close(held)


def _cannot_open(pipe: Pipe, error: OSError) -> Conflict:
    if error.errno == errno.ENXIO:
        return refusals.no_reader(pipe.path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return refusals.no_permission(pipe.pid, pipe.owner)
    return refusals.pipe_changed(pipe.path)


def _name_of(link: str) -> str:
    return PurePosixPath(link.removesuffix(_DELETED)).name
