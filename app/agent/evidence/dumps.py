"""Crash and request dumps that servers wrote: found, listed, and copied on request.

They are pickles and are never opened as such here: only their bytes move. No link is followed,
and what is not the server's own file is not its dump.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from shlex import quote

from app.agent.evidence.server_folders import DUMP_NAME, ServerFolder, server_folders
from app.agent.kept.files import AgentFiles
from app.agent.processes.asked_for import servers_asked_for
from app.agent.processes.proc import descriptors, pid_of, read_status
from app.agent.processes.table import ProcessTable
from app.agent.touching.folder_entries import Entry, entries
from app.agent.touching.pinned import effective_uid, open_regular
from app.agent.touching.rooted import open_folder
from app.errors import Conflict, NotFound, Rejected, TooLarge
from app.protocol.messages import DumpFound, Dumps, FileTaken, Refusal, Server

MAX_DUMPS = 500
MAX_COPY_BYTES = 1024**3
KEPT_FREE = 1 / 4  # of the quota: copies of dumps must not take the room that stacks need
QUIET_SECONDS = 3.0  # a file that changed later than that may still be written
_CHUNK_BYTES = 1024 * 1024
_KINDS = {"crash": "crash dump", "request": "request dump", "gpu": "coredump"}


@dataclass(frozen=True, slots=True)
class _Place:
    """A dump and how to get at it again."""

    folder: ServerFolder
    entry: Entry
    found: DumpFound


def find_dumps(
    *,
    table: ProcessTable,
    process_ids: Sequence[str] | None = None,
    folders: Sequence[str] = (),
) -> Dumps:
    """The dumps in the folders of the servers of *process_ids*, or of every one; newest first.

    In *folders*, which the console named, only request dumps of these servers are seen.
    """
    at = datetime.now(UTC)
    servers, refused = servers_asked_for(table, process_ids)
    looked_in: list[str] = []
    places: dict[str, _Place] = {}
    for server in servers:
        for folder in server_folders(server, folders):
            try:
                places |= {place.found.id: place for place in _look(server, folder)}
            except OSError as error:
                refused.append(_unread(server, folder, error))
            else:
                looked_in.append(folder.shown)
    dumps = sorted((place.found for place in places.values()), key=_newest)[:MAX_DUMPS]
    return Dumps(at=at, dumps=dumps, looked_in=list(dict.fromkeys(looked_in)), refused=refused)


def fetch_dump(
    dump_id: str, *, table: ProcessTable, files: AgentFiles, folders: Sequence[str] = ()
) -> DumpFound:
    """The dump with a copy of its bytes in the agent's own files.

    Raises NotFound, Conflict while it grows, TooLarge, NoSpace.
    """
    place = _place(dump_id, table, folders)
    if place.found.growing:
        raise Conflict("This dump is still being written.", fix="Fetch it once it has grown up.")
    if place.found.size_bytes > MAX_COPY_BYTES:
        raise TooLarge(
            f"This dump has {place.found.size_bytes} bytes; {MAX_COPY_BYTES} are copied at most.",
            fix="Copy it from the host by hand.",
            command=f"ls -l {quote(place.found.path)}",
        )
    return place.found.model_copy(update={"file": _known(place, files) or _copy(place, files)})


def _look(server: Server, folder: ServerFolder) -> Iterator[_Place]:
    """Raises OSError where the folder cannot be read."""
    owner = effective_uid(read_status(pid_of(server.id)))
    written = _written_inodes(server)
    opened = open_folder(folder.pid, folder.path)
    try:
        for entry in entries(opened):
            if entry.owner == owner and folder.holds(entry.below, entry.name):
                yield _Place(folder, entry, _found(server, folder, entry, written))
    finally:
        os.close(opened)


def _found(
    server: Server, folder: ServerFolder, entry: Entry, written: set[tuple[int, int]]
) -> DumpFound:
    path = str(PurePosixPath(folder.shown, entry.below, entry.name))
    identity = f"{entry.device}:{entry.inode}:{path}"
    fresh = time.time() - entry.changed_seconds < QUIET_SECONDS
    return DumpFound(
        id=hashlib.sha256(identity.encode()).hexdigest()[:32],
        path=path,
        size_bytes=entry.size_bytes,
        changed_at=datetime.fromtimestamp(entry.changed_seconds, UTC),
        server_id=server.id,
        growing=fresh or (entry.device, entry.inode) in written,
    )


def _written_inodes(server: Server) -> set[tuple[int, int]]:
    """The dumps that processes of *server* hold open for writing."""
    inodes = set()
    for process in server.processes:
        for held in descriptors(process.pid):
            writes = held.flags is None or held.flags & os.O_ACCMODE != os.O_RDONLY
            if writes and DUMP_NAME.fullmatch(PurePosixPath(held.link).name):
                with suppress(OSError):
                    found = os.stat(f"/proc/{process.pid}/fd/{held.number}")  # noqa: PTH116
                    inodes.add((found.st_dev, found.st_ino))
    return inodes


def _place(dump_id: str, table: ProcessTable, folders: Sequence[str]) -> _Place:
    for server in table.processes().servers:
        for folder in server_folders(server, folders):
            with suppress(OSError):
                for place in _look(server, folder):
                    if place.found.id == dump_id:
                        return place
    raise NotFound("No server here has such a dump any more.")


def _known(place: _Place, files: AgentFiles) -> FileTaken | None:
    """A copy that was taken of the same bytes before."""
    found = place.found
    same = (file for file in files.listing(found.changed_at) if file.name == _name(place))
    return next((file for file in same if file.size_bytes == found.size_bytes), None)


def _copy(place: _Place, files: AgentFiles) -> FileTaken:
    match = DUMP_NAME.fullmatch(place.entry.name)
    files.room(place.found.size_bytes + int(files.quota_bytes * KEPT_FREE))
    return files.keep(
        _bytes(place),
        name=_name(place),
        kind=_KINDS[match.lastgroup or ""] if match else "crash dump",
        process_id=place.found.server_id,
        tier="T2",
    )


def _name(place: _Place) -> str:
    return f"{place.found.id[:8]}-{place.entry.name}"


def _bytes(place: _Place) -> Iterator[bytes]:
    """The content; raises Conflict at its end where the file changed meanwhile."""
    with _opened(place) as descriptor:
        before = os.fstat(descriptor)
        left = before.st_size
        while left > 0 and (piece := os.read(descriptor, min(left, _CHUNK_BYTES))):
            left -= len(piece)
            yield piece
        after = os.fstat(descriptor)
        if left or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise Conflict("The dump changed while it was read.", fix="Fetch it again later.")


@contextmanager
def _opened(place: _Place) -> Iterator[int]:
    """The very file that was listed; raises Rejected where another has taken its name."""
    descriptors_opened: list[int] = []
    try:
        folder = open_folder(place.folder.pid, place.folder.path)
        descriptors_opened.append(folder)
        if place.entry.below:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            folder = os.open(place.entry.below, flags, dir_fd=folder)
            descriptors_opened.append(folder)
        descriptor, found = open_regular(folder, place.entry.name)
        descriptors_opened.append(descriptor)
        if (found.st_dev, found.st_ino) != (place.entry.device, place.entry.inode):
            raise Rejected("Another file has taken the name of this dump.")
        yield descriptor
    except OSError as error:
        raise NotFound(f"The dump cannot be read: {error.strerror or error}.") from error
    finally:
        for opened in descriptors_opened:
            os.close(opened)


def _unread(server: Server, folder: ServerFolder, error: OSError) -> Refusal:
    return Refusal(
        process_id=server.id,
        kind="no folder",
        reason=f"{folder.shown} cannot be read: {error.strerror or error}.",
        fix="The server makes it when it dumps for the first time; else look at its rights.",
    )


def _newest(found: DumpFound) -> float:
    return -found.changed_at.timestamp()
