"""Who has a file open for writing, in all processes that can be seen."""

import os
from contextlib import suppress

from app.agent.processes import proc


def writers(name: str, device: int, inode: int, *, likely: int) -> list[int]:
    """Pids that have the file *name* (its last part) open for writing.

    Only links of that name are followed: a look at every open file of a host would wait for each
    network disk that is gone. While *likely* writes, nobody else is looked at: that is cheap
    enough to be done four times a second for an hour.
    """
    if _writes(likely, name, device, inode):
        return [likely]
    return [pid for pid in proc.pids() if _writes(pid, name, device, inode)]


def _writes(pid: int, name: str, device: int, inode: int) -> bool:
    for number, link in (proc.links(pid) or {}).items():
        if link.removesuffix(" (deleted)").rpartition("/")[2] != name:
            continue
        with suppress(OSError):
            there = os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116  (through the magic link)
            if (there.st_dev, there.st_ino) == (device, inode) and _is_writing(pid, number):
                return True
    return False


def _is_writing(pid: int, number: int) -> bool:
    flags = next((d.flags for d in proc.descriptors(pid) if d.number == number), None)
    return flags is not None and flags & os.O_ACCMODE != os.O_RDONLY
