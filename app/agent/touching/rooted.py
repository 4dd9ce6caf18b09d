"""Folders of a process, opened so that nobody can lead us elsewhere.

``/proc/PID/root/…`` follows an absolute symbolic link in *our* root: measured, a container's link
to /etc/hostname gave the host's file. So paths in another mount namespace are walked with
``openat2(2)`` below its root, without any symbolic link; where the kernel has no such call (before
5.6, or filtered), component by component, which is as strict.
"""

import ctypes
import errno
import os
from pathlib import PurePosixPath

from app.agent.processes import proc

_OPENAT2 = 437  # the same number on every architecture
_NO_MAGIC_LINKS, _NO_SYMLINKS, _IN_ROOT = 0x02, 0x04, 0x10
_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LIBC = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    """``struct open_how`` of linux/openat2.h."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def shares_our_files(pid: int) -> bool:
    """Whether a path means the same file to *pid* as to us."""
    try:
        theirs, ours = os.stat(f"/proc/{pid}/root"), os.stat("/")  # noqa: PTH116
    except OSError:
        return False
    same_root = (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)
    return same_root and proc.namespace(pid, "mnt") == proc.own_namespace("mnt")


def open_folder(pid: int, path: str) -> int:
    """A descriptor of the folder that *path* is to *pid*; "" and relative ones start at its cwd.

    Raises OSError, also where a symbolic link is on the way in another mount namespace.
    """
    if not path.startswith("/"):
        start = os.open(f"/proc/{pid}/cwd", _READ_FOLDER)
    else:
        start = os.open(f"/proc/{pid}/root", _READ_FOLDER)
    relative = path.strip("/")
    if not relative:
        return start
    try:
        if shares_our_files(pid):
            return os.open(relative, _READ_FOLDER, dir_fd=start)
        return open_below(start, relative)
    finally:
        os.close(start)


def open_below(start: int, relative: str) -> int:
    """The folder *relative* below the folder *start*, no symbolic link on the way."""
    how = _How(_READ_FOLDER, 0, _IN_ROOT | _NO_SYMLINKS | _NO_MAGIC_LINKS)
    name = os.fsencode(relative)
    opened = int(_LIBC.syscall(_OPENAT2, start, name, ctypes.byref(how), ctypes.sizeof(how)))
    if opened >= 0:
        return opened
    number = ctypes.get_errno()
    if number not in (errno.ENOSYS, errno.EPERM):
        raise OSError(number, os.strerror(number), relative)
    return walk_below(start, relative)


def walk_below(start: int, relative: str) -> int:
    """As ``open_below``, one component at a time."""
    opened = os.dup(start)
    for part in PurePosixPath(relative).parts:
        if part == "..":
            os.close(opened)
            raise OSError(errno.ELOOP, "a path may not go up", relative)
        try:
            following = os.open(part, _READ_FOLDER | os.O_NOFOLLOW, dir_fd=opened)
        finally:
            os.close(opened)
        opened = following
    return opened
