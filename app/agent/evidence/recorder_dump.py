"""The file that torch's flight recorder writes: where it may be, and when it is whole."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from app.agent.processes.proc import alive, environment, read_status
from app.agent.touching.pinned import effective_uid, open_regular
from app.agent.touching.rooted import open_folder
from app.agent.touching.writers import writers
from app.errors import NotFound, TooLarge, Unreachable
from app.protocol.messages import Process, Server

SETTLED_SECONDS = 1.0  # unchanged for so long, and nobody writes to it
LOOK_SECONDS = 0.1
MAX_BYTES = 256 * 1024**2
_CHUNK_BYTES = 1024 * 1024
_FILE_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_OLD_DEFAULT = "/tmp/nccl_trace_rank_"  # noqa: S108  (of torch, not ours)


@dataclass(frozen=True, slots=True)
class State:
    """What tells that a file has changed."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int


def dump_paths(process: Process, server: Server, rank: str) -> list[str]:
    """Where torch may write: as environments that can be read say, else its defaults."""
    return list(dict.fromkeys(_candidates(process, server, rank)))


def _candidates(process: Process, server: Server, rank: str) -> Iterator[str]:
    known = [environment(one.pid) for one in (process, *server.processes)]
    readable = [variables for variables in known if variables is not None]
    for variables in readable:
        for name in _FILE_VARIABLES:
            if prefix := variables.get(name):
                yield f"{prefix}{rank}"
    for variables in [*readable, {}]:
        home = variables.get("HOME", "/root")
        cache = variables.get("XDG_CACHE_HOME") or f"{home}/.cache"
        yield f"{cache}/torch/comm_lib_trace_rank_{rank}"
    yield f"{_OLD_DEFAULT}{rank}"


def grown(process: Process, before: Mapping[str, State | None], wait_seconds: float) -> str:
    """The path whose file is new or changed, once it has settled; raises Unreachable."""
    deadline = time.monotonic() + wait_seconds
    last: Mapping[str, State | None] = {}
    since = time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        now = {path: state(process.pid, path) for path in before}
        if now != last:
            last, since = now, time.monotonic()
        settled = time.monotonic() - since >= SETTLED_SECONDS
        for path, seen in now.items():
            if (
                seen
                and settled
                and seen != before[path]
                and not _is_written(process.pid, path, seen)
            ):
                return path
        if not alive(process.id):
            raise NotFound("The process ended before it wrote its dump.")
    raise Unreachable(
        f"The byte was sent; no dump appeared within {wait_seconds:g} s.",
        why="A process that stands still does not read its pipe, and its dump may go to a file "
        "that is not known here.",
        fix=f"Look for a new file: {', '.join(before)}.",
    )


def state(pid: int, path: str) -> State | None:
    """What the file is now; None where there is none that is a regular file of the process."""
    try:
        descriptor, found = _opened(pid, path)
    except OSError:
        return None
    os.close(descriptor)
    return State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _opened(pid: int, path: str) -> tuple[int, os.stat_result]:
    """The regular file *path* as *pid* sees it, its own; raises OSError."""
    folder = open_folder(pid, str(PurePosixPath(path).parent))
    try:
        descriptor, found = open_regular(folder, PurePosixPath(path).name)
    finally:
        os.close(folder)
    if found.st_uid != effective_uid(read_status(pid)):
        os.close(descriptor)
        raise OSError(f"{path} belongs to another user")
    return descriptor, found


def content(pid: int, path: str) -> Iterator[bytes]:
    """Its bytes in pieces; raises NotFound and TooLarge."""
    try:
        descriptor, found = _opened(pid, path)
    except OSError as error:
        raise NotFound(f"The dump is gone: {error.strerror or error}.") from error
    with os.fdopen(descriptor, "rb") as dump:
        if found.st_size > MAX_BYTES:
            raise TooLarge(f"The dump has {found.st_size} bytes; {MAX_BYTES} are taken at most.")
        left = found.st_size
        while left > 0 and (piece := dump.read(min(left, _CHUNK_BYTES))):
            left -= len(piece)
            yield piece


def _is_written(pid: int, path: str, seen: State) -> bool:
    return bool(writers(PurePosixPath(path).name, seen.device, seen.inode, likely=pid))
