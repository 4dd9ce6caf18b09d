"""Torch's flight recorder: what each rank did on its process groups, asked for through its pipe.

With TORCH_NCCL_DEBUG_INFO_PIPE_FILE set, torch reads ``<stem><rank>.pipe`` some seconds apart;
any byte makes it write ``<prefix><rank>``, a pickle. The bytes move on unread: see
ProcessGroupNCCL.hpp and FlightRecorder.cpp of torch.
"""

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from app.agent.evidence.recorder_dump import content, dump_paths, grown, state
from app.agent.kept.files import AgentFiles
from app.agent.processes.proc import alive, descriptors, environment, read_status
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.agent.touching.pinned import effective_uid, pinned, reopened
from app.errors import Conflict, Rejected
from app.protocol.messages import FileTaken, Process, Server

WAIT_SECONDS = 30.0  # torch looks at its pipe about once a second; the dump takes more
_VARIABLE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_ANY_PIPE = re.compile(r".{0,200}?(?P<rank>\d{1,6})\.pipe", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Pipe:
    number: int  # of the descriptor in the process
    rank: str
    device: int
    inode: int


def read_flight_recorder(
    process_id: str,
    *,
    table: ProcessTable,
    holds: Holds,
    files: AgentFiles,
    wait_seconds: float = WAIT_SECONDS,
) -> FileTaken:
    """The dump that the process writes when its pipe is written to, as it wrote it.

    Raises NotFound, Conflict, Rejected, Unreachable when none came in time, TooLarge, NoSpace.
    """
    process, server = table.find(process_id), table.server_of(process_id)
    with holds.hold(process.pid, "the flight recorder"):
        pipe = _pipe(process, _pipe_name(process, server))
        paths = dump_paths(process, server, pipe.rank)
        before = {path: state(process.pid, path) for path in paths}
        files.room(1)
        _trigger(process, pipe)
        path = grown(process, before, wait_seconds)
        return files.keep(
            content(process.pid, path),
            name=f"flight-recorder-rank{pipe.rank}.pickle",
            kind="flight recorder",
            process_id=process_id,
            tier="T2",
        )


def _pipe_name(process: Process, server: Server) -> re.Pattern[str]:
    """How its pipe is called: as a readable environment says, else as torch ends all of them.

    Raises Rejected where its own environment shows that it was started without one.
    """
    own = environment(process.pid)
    others = [environment(one.pid) or {} for one in server.processes]
    for variables in (own or {}, *others):
        if stem := variables.get(_VARIABLE):
            return re.compile(rf"{re.escape(PurePosixPath(stem).name)}(?P<rank>\d{{1,6}})\.pipe")
    if own is not None:
        raise _no_pipe()
    return _ANY_PIPE


def _no_pipe() -> Rejected:
    return Rejected(
        "It has no flight recorder pipe open.",
        fix="Set both at the next start; this one cannot be changed.",
        command=f"export TORCH_FR_BUFFER_SIZE=2000 {_VARIABLE}=/tmp/flight_recorder_rank_",
    )


def _pipe(process: Process, name: re.Pattern[str]) -> _Pipe:
    """The one FIFO of that name that the process itself reads."""
    held = descriptors(process.pid)
    if not held:
        raise Rejected(
            "Its open files cannot be read.",
            fix="Let the agent run as root or as the owner of the server.",
        )
    found: dict[tuple[int, int], _Pipe] = {}
    for one in held:
        match = name.fullmatch(PurePosixPath(one.link.removesuffix(" (deleted)")).name)
        reads = one.flags is not None and one.flags & os.O_ACCMODE != os.O_WRONLY
        if match and reads and not (one.flags or 0) & os.O_PATH:
            with suppress(OSError), pinned(process.pid, one.number) as (_, there):
                if stat.S_ISFIFO(there.st_mode):
                    inode = (there.st_dev, there.st_ino)
                    found.setdefault(inode, _Pipe(one.number, match["rank"], *inode))
    if not found:
        raise _no_pipe()
    if len(found) > 1:
        raise Rejected("It has several pipes that look like a flight recorder: which is not known.")
    return next(iter(found.values()))


def _trigger(process: Process, pipe: _Pipe) -> None:
    """Write one byte to the FIFO of the process, if it is still that FIFO and its owner's."""
    owner = effective_uid(read_status(process.pid))
    try:
        with pinned(process.pid, pipe.number) as (pin, there):
            same = (there.st_dev, there.st_ino) == (pipe.device, pipe.inode)
            if not same or not stat.S_ISFIFO(there.st_mode) or not alive(process.id):
                raise Conflict("The process or its pipe changed while it was looked at.")
            if there.st_uid != owner:
                raise Rejected(f"The pipe belongs to uid {there.st_uid}, not to the process.")
            _write(reopened(pin, os.O_WRONLY))
    except OSError as error:
        raise Rejected(
            f"The pipe cannot be written to: {error.strerror}.",
            fix="Let the agent run as root or as the owner of the server.",
        ) from error


def _write(descriptor: int) -> None:
    try:
        os.write(descriptor, b"1")
    finally:
        os.close(descriptor)
