"""What the kernel tells of a process, in bounded reads that never fail.

A process may end between two lines of ours, or be another user's: what cannot be read is None or
empty. *root* is where procfs is mounted; tests give a tree that they made up.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

PROC = Path("/proc")

_SMALL_BYTES = 4096  # stat, status, wchan, cgroup: a page is plenty
_ARGUMENTS_BYTES = 64 * 1024
_ENVIRONMENT_BYTES = 1024 * 1024
_MAPS_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_MAX_DESCRIPTORS = 16_384
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h


@dataclass(frozen=True, slots=True)
class Stat:
    """``/proc/PID/stat``; times are in ticks of the clock."""

    pid: int
    comm: str  # cut by the kernel to 15 bytes
    state: str  # R S D T t Z X
    parent_pid: int
    group: int
    session: int
    start_ticks: int  # since the boot
    threads: int
    rss_bytes: int
    utime_ticks: int
    kernel_thread: bool = False

    @property
    def id(self) -> str:
        """``<pid>.<start in ticks>``: a pid is given again, this is not."""
        return f"{self.pid}.{self.start_ticks}"

    @property
    def ended(self) -> bool:
        """Whether only its entry is left, until its parent takes note: a zombie."""
        return self.state in ("Z", "X", "x")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """An open file of a process: *link* is a path, ``socket:[inode]`` or ``pipe:[inode]``."""

    number: int
    link: str
    flags: int | None  # as of open(2)


def pids(root: Path = PROC) -> list[int]:
    """All processes that can be seen, in the order of their pids."""
    try:
        return _numbers(root)
    except OSError:
        return []


def _numbers(folder: str | Path, most: int | None = None) -> list[int]:
    with os.scandir(folder) as entries:
        return sorted(
            int(name)
            for entry in islice(entries, most)
            if (name := entry.name).isascii() and name.isdigit()
        )


def read_stat(pid: int, root: Path = PROC) -> Stat | None:
    """None when there is no such process."""
    line = read_bytes(f"{root}/{pid}/stat", _SMALL_BYTES) or b""
    # The name stands in parentheses and may hold blanks and parentheses itself.
    start, end = line.find(b"("), line.rfind(b")")
    fields = line[end + 2 :].split()
    if start < 0 or len(fields) < 22:
        return None
    try:
        return Stat(
            pid=pid,
            comm=line[start + 1 : end].decode(errors="replace"),
            state=fields[0].decode(),
            parent_pid=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]),
            kernel_thread=bool(int(fields[6]) & _KERNEL_THREAD),
            utime_ticks=int(fields[11]),
            threads=int(fields[17]),
            start_ticks=int(fields[19]),
            rss_bytes=int(fields[21]) * _PAGE_BYTES,
        )
    except ValueError:
        return None


def read_status(pid: int, root: Path = PROC) -> dict[str, str]:
    """``/proc/PID/status`` by name: Uid, NSpid, TracerPid, CapEff, Seccomp …; {} when gone."""
    text = (read_bytes(f"{root}/{pid}/status", _SMALL_BYTES) or b"").decode(errors="replace")
    pairs = (line.partition(":") for line in text.split("\n"))
    return {name: value.strip() for name, colon, value in pairs if colon}


def command_line(pid: int, root: Path = PROC) -> list[str]:
    """The arguments, without the empty ones that a title leaves behind; [] when not readable."""
    line = read_bytes(f"{root}/{pid}/cmdline", _ARGUMENTS_BYTES) or b""
    line = line.rstrip(b"\0")
    return line.decode(errors="replace").split("\0") if line else []


def environment(pid: int, root: Path = PROC) -> dict[str, str] | None:
    """The environment at the start of the process; None when not readable or wiped.

    setproctitle wipes it from the front, sometimes not to the end: what is left then would make
    the variables that are gone look unset, so it counts as wiped.
    """
    block = read_bytes(f"{root}/{pid}/environ", _ENVIRONMENT_BYTES)
    if block is None:
        return None
    entries = block.decode(errors="replace").removesuffix("\0").split("\0") if block else []
    if entries and "=" not in entries[0]:
        return None
    return {name: value for name, equals, value in map(_parted, entries) if equals}


def _parted(entry: str) -> tuple[str, str, str]:
    return entry.partition("=")


def namespace(pid: int, kind: str, root: Path = PROC) -> str | None:
    """``pid:[4026531836]`` for the kinds pid, mnt, net, uts, user …"""
    return read_link(f"{root}/{pid}/ns/{kind}")


def own_namespace(kind: str, root: Path = PROC) -> str | None:
    """That of this process itself."""
    return read_link(f"{root}/self/ns/{kind}")


def executable(pid: int, root: Path = PROC) -> str | None:
    """The path of the program, with `` (deleted)`` where the file was replaced meanwhile."""
    return read_link(f"{root}/{pid}/exe")


def wchan(pid: int, root: Path = PROC) -> str | None:
    """The kernel function that the main thread sleeps in; None when it runs or it is hidden."""
    name = (read_bytes(f"{root}/{pid}/wchan", _SMALL_BYTES) or b"").decode(errors="replace")
    return name if name not in ("", "0") else None


def cgroup(pid: int, root: Path = PROC) -> str | None:
    """The path of its cgroup: the memory controller's on version 1, else the one of version 2."""
    text = (read_bytes(f"{root}/{pid}/cgroup", _SMALL_BYTES) or b"").decode(errors="replace")
    paths = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            paths.update(dict.fromkeys(controllers.split(","), path))
    return paths.get("memory", paths.get(""))


def mapped(pid: int, *names: str, root: Path = PROC, limit: int = _MAPS_BYTES) -> set[str] | None:
    """Which of *names* stand in the paths of its mapped files; None when not readable."""
    wanted, found, tail, seen = {name: name.encode() for name in names}, set(), b"", False
    overlap = max(map(len, wanted.values()), default=0)
    for chunk in _chunks(f"{root}/{pid}/maps", limit):
        seen, window = True, tail + chunk
        found |= {name for name, sought in wanted.items() if sought in window}
        if len(found) == len(wanted):
            break
        tail = window[-overlap:]
    return found if seen else None


def links(pid: int, root: Path = PROC, *, most: int = _MAX_DESCRIPTORS) -> dict[int, str] | None:
    """What its first *most* open files are, by number; None when not readable."""
    folder = f"{root}/{pid}/fd"
    try:
        numbers = _numbers(folder, most)  # the kernel lists them in the order of their numbers
    except OSError:
        return None
    read = ((number, read_link(f"{folder}/{number}")) for number in numbers)
    return {number: link for number, link in read if link is not None}


def open_files(pid: int, root: Path = PROC) -> int | None:
    """How many files it has open; None when not readable."""
    try:
        return len(_numbers(f"{root}/{pid}/fd"))
    except OSError:
        return None


def descriptors(pid: int, root: Path = PROC) -> list[Descriptor]:
    """Its open files with the flags they were opened with; [] when not readable."""
    return [
        Descriptor(number, link, _flags(pid, number, root))
        for number, link in (links(pid, root) or {}).items()
    ]


def _flags(pid: int, number: int, root: Path) -> int | None:
    text = read_bytes(f"{root}/{pid}/fdinfo/{number}", _SMALL_BYTES) or b""
    for line in text.split(b"\n"):  # bytes: a driver may print a name that somebody gave it
        if line.startswith(b"flags:") and (value := line[6:].strip()).isdigit():
            return int(value, 8)
    return None


def process_id(pid: int, root: Path = PROC) -> str | None:
    """``<pid>.<start in ticks>``; None when it is gone."""
    stat = read_stat(pid, root)
    return stat.id if stat else None


def pid_of(process_id: str) -> int:
    """The pid inside a process id."""
    return int(process_id.partition(".")[0])


def alive(process_id: str, root: Path = PROC) -> bool:
    """Whether that very process still runs; a zombie does not."""
    stat = read_stat(pid_of(process_id), root)
    return stat is not None and stat.id == process_id and not stat.ended


def boot_seconds(root: Path = PROC) -> int | None:
    """When the kernel started, in seconds since 1970; None when it cannot be read."""
    for line in lines(f"{root}/stat", _MAPS_BYTES):
        if line.startswith(b"btime ") and (digits := line[6:].strip()).isdigit():
            return int(digits)
    return None


def read_bytes(path: str, limit: int) -> bytes | None:
    """The first *limit* bytes; None when the file is gone or not for us."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        data = part = os.read(descriptor, limit)
        # Small files come whole at once, others a page at a time.
        while part and len(data) < limit and limit > _SMALL_BYTES:
            part = os.read(descriptor, limit - len(data))
            data += part
    except OSError:  # ESRCH: it ended meanwhile
        return None
    finally:
        os.close(descriptor)
    return data


def lines(path: str, limit: int) -> Iterator[bytes]:
    """The lines of a file as far as they are asked for, within its first *limit* bytes."""
    rest = b""
    for chunk in _chunks(path, limit):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def read_link(path: str) -> str | None:
    """Where a symbolic link points; None when it is gone or not for us."""
    try:
        return os.readlink(path)  # noqa: PTH115 -- thousands of them, and no path is asked of it
    except OSError:
        return None


def _chunks(path: str, limit: int) -> Iterator[bytes]:
    """A file in pieces, until its end, an error or *limit* bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    try:
        while limit > 0 and (chunk := os.read(descriptor, _CHUNK_BYTES)):
            limit -= len(chunk)  # procfs gives a page at a time
            yield chunk
    except OSError:
        return
    finally:
        os.close(descriptor)
