"""What must hold before a coredump is triggered, looked at right before it is."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from app.agent.coredump import refusals
from app.agent.coredump.dump_folders import Folder
from app.agent.coredump.endings import Limits
from app.agent.coredump.pipes import Uses
from app.agent.processes import proc
from app.agent.touching.host_lock import HostLock
from app.agent.touching.rooted import open_folder
from app.domain.cuda_settings import cuda_settings, folder_of, path_of
from app.errors import NotFound
from app.protocol.messages import Process

Environment = Mapping[str, str]

_TRACKER = "multiprocessing.resource_tracker"
_MPS_SERVER = "nvidia-cuda-mps-server"


def dump_turn(limits: Limits) -> HostLock:
    """The one turn to dump on this host; raises Conflict where another process has it."""
    taken = refusals.dump_running("another process of this host watches one")
    return HostLock(limits.host_lock, taken=taken)


def tracker_environments(pids: Iterable[int]) -> list[Environment]:
    """What multiprocessing's resource trackers among *pids* were started with.

    SGLang sets CUDA variables at run time, and titles wipe environments: the tracker is started
    last and has no title, so its own shows them.
    """
    trackers = [one for one in pids if _TRACKER in " ".join(proc.command_line(one))]
    return [told for one in trackers if (told := proc.environment(one)) is not None]


def uses_of(pid: int, server_pid: int, trackers: Sequence[Environment] = ()) -> Uses:
    """Who *pid* is, and what it and its server were told about coredumps; raises NotFound.

    *trackers* are the environments of its server's resource trackers.
    """
    status = proc.read_status(pid)
    users, inner = status.get("Uid", "").split(), status.get("NSpid", "").split()
    if len(users) < 2:
        raise NotFound(f"Process {pid} has ended.")
    ours = proc.namespace(pid, "uts") == proc.own_namespace("uts")
    told = [proc.environment(pid), *trackers, proc.environment(server_pid)]
    settings = cuda_settings(told, proc.command_line(server_pid))
    return Uses(
        pid=pid,
        inner_pid=int(inner[-1]) if inner else pid,
        owner=int(users[1]),  # the effective one: it is what the driver makes files with
        host=os.uname().nodename if ours else None,
        settings=settings,
    )


def check_process(uses: Uses) -> None:
    """Raises Conflict where a dump of this process would do harm or lead nowhere."""
    found = proc.read_stat(uses.pid)
    if found is None or found.state in "ZXx":
        raise NotFound(f"Process {uses.pid} has ended.")
    if found.state in "Tt":
        raise refusals.not_running(uses.pid, found.state)
    tracer = proc.read_status(uses.pid).get("TracerPid", "0")
    if tracer.isdigit() and int(tracer):
        raise refusals.traced(uses.pid, int(tracer))
    if (server := mps_server(uses.owner)) is not None:
        raise refusals.under_mps(server)


def check_settings(uses: Uses) -> None:
    """Raises Conflict where its dump would go nowhere, or where its end could not be seen."""
    if uses.settings.to_a_command:
        raise refusals.to_a_command()
    if (flag := uses.settings.writes_no_file) is not None:
        raise refusals.no_file_by_flag(flag)
    if uses.settings.file is None:
        return
    folder = folder_of(uses.settings.file, host=uses.host, pid=uses.inner_pid)
    if folder is None:
        return
    try:
        opened = open_folder(uses.pid, folder)
    except FileNotFoundError as error:
        raise refusals.no_folder(folder) from error
    except OSError:
        return  # another mount namespace, or not for us: it cannot be told
    try:
        _check_what_is_there(uses, opened)
    finally:
        os.close(opened)


def _check_what_is_there(uses: Uses, folder: int) -> None:
    path = path_of(uses.settings.file or "", host=uses.host, pid=uses.inner_pid)
    if not path:
        return
    with suppress(OSError):
        there = os.stat(PurePosixPath(path).name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(there.st_mode):
            raise refusals.to_a_pipe(path)


def check_room(
    uses: Uses, folders: list[Folder], process: Process, limits: Limits, largest_bytes: int
) -> None:
    """Raises Conflict where the dump may fill the disk of the likeliest folder."""
    if not folders:
        return
    needed_bytes, reason = limits.min_free_bytes, "That much is kept free in any case."
    if 2 * largest_bytes > needed_bytes:
        needed_bytes, reason = 2 * largest_bytes, "It is twice the largest dump seen here."
    in_use = sum(gpu.used_bytes or 0 for gpu in process.gpus or [])
    if not uses.settings.skips_memory and in_use > needed_bytes:
        needed_bytes = in_use
        reason = "Nothing says that GPU memory is left out, so a dump may be as large as it."
    free_bytes = folders[0].free_bytes
    if free_bytes < needed_bytes:
        raise refusals.disk_too_full(
            folders[0].path, free_bytes=free_bytes, needed_bytes=needed_bytes, reason=reason
        )


def mps_server(owner: int, root: Path = proc.PROC) -> int | None:
    """The MPS server that *owner*'s processes may be clients of; None where there is none.

    One server serves one user, or, run by root, several. Who its clients are is not told, so
    every process of such a user counts as one.
    """
    for pid in proc.pids(root):
        program = (proc.command_line(pid, root) or [""])[0]
        if program.rpartition("/")[2] != _MPS_SERVER:
            continue
        users = proc.read_status(pid, root).get("Uid", "").split()
        if len(users) > 1 and int(users[1]) in (owner, 0):
            return pid
    return None
