"""Whether NCCL and torch can be asked what each rank was doing: RAS and the flight recorder."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.agent.evidence.ras_address import not_listening, ras_port
from app.agent.processes.ports import Listeners
from app.agent.processes.proc import PROC, environment, links, mapped
from app.errors import Rejected
from app.protocol.messages import Check, Process, Server

Environment = Mapping[str, str]

_SIZES = ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE")
_PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_LAUNCH_ENV = "incident-console launch-env --crash-dump-folder DIR"


def ras_check(server: Server, root: Path = PROC) -> Check:
    """Whether a process of *server* listens for NCCL's RAS protocol."""
    try:
        port = ras_port(server)
    except Rejected as error:
        return Check(capability="nccl ras", ready=False, says=error.what, fix=error.fix)
    listeners = Listeners(root)
    listening = [listeners.of(process.pid) for process in server.processes]
    if any(port in one.ports for one in listening):
        return Check(capability="nccl ras", ready=True, says=f"NCCL listens on port {port}.")
    if not all(one.whole for one in listening):
        says = "Which ports its processes listen on cannot be read, or not all of them."
        return Check(capability="nccl ras", ready=None, says=says)
    return _why_not(server, port, root)


def _why_not(server: Server, port: int, root: Path) -> Check:
    loaded = [mapped(process.pid, "libnccl", root=root) for process in server.processes]
    if None not in loaded and not any(loaded):
        return Check(
            capability="nccl ras",
            ready=False,
            says="No process of this server has loaded NCCL.",
            fix="Compare stacks instead: only servers with several GPUs use NCCL.",
        )
    if _told(environments(server.processes, root), "NCCL_RAS_ENABLE") == "0":
        return Check(
            capability="nccl ras",
            ready=False,
            says="It was started with NCCL_RAS_ENABLE=0.",
            fix="Start it without NCCL_RAS_ENABLE.",
        )
    error = not_listening(port)
    return Check(
        capability="nccl ras",
        ready=False,
        says=error.what if error.why is None else f"{error.what} {error.why}",
        fix=error.fix,
        command=error.command,
    )


def recorder_check(process: Process, told: Sequence[Environment], root: Path = PROC) -> Check:
    """Whether torch's flight recorder of this rank can be asked: its pipe, and what it keeps.

    *told* are the environments of its server that can be read.
    """
    opened = links(process.pid, root)
    if opened is None:
        return Check(
            capability="flight recorder",
            ready=False,
            says="Its open files cannot be read: its pipe cannot be found.",
            fix="Let the agent run as root or as the owner of the server.",
        )
    pipes = [number for number, link in opened.items() if _is_pipe(process.pid, number, link, root)]
    sizes = [size for name in _SIZES if (size := _told(told, name)) is not None]
    if pipes and "0" in sizes:
        return Check(
            capability="flight recorder",
            ready=False,
            says="Its pipe is there, but it was told to record nothing.",
            fix="Start it with TORCH_NCCL_TRACE_BUFFER_SIZE=2000.",
        )
    if pipes:
        says = f"It reads its pipe {opened[pipes[0]]}."
        return Check(capability="flight recorder", ready=True, says=says)
    return Check(
        capability="flight recorder",
        ready=False,
        says=_why_no_pipe(process, root),
        fix=f"Start the server with {_PIPE} set.",
        command=_LAUNCH_ENV,
    )


def _why_no_pipe(process: Process, root: Path) -> str:
    torch = mapped(process.pid, "libtorch_cuda", root=root)
    if torch is not None and not torch:
        return "It has not loaded torch for CUDA, so it has no flight recorder."
    return "It has no flight-recorder pipe open."


def _is_pipe(pid: int, number: int, link: str, root: Path) -> bool:
    if not link.startswith("/") or not link.endswith(".pipe"):
        return False
    try:
        found = os.stat(f"{root}/{pid}/fd/{number}")  # noqa: PTH116  (through the magic link)
    except OSError:
        return False
    return stat.S_ISFIFO(found.st_mode)


def environments(processes: Sequence[Process], root: Path = PROC) -> list[Environment]:
    """Those of *processes* that can be read; a title wipes the environment of a rank."""
    read = (environment(process.pid, root) for process in processes)
    return [told for told in read if told is not None]


def _told(environments: Sequence[Environment], name: str) -> str | None:
    """What the first of them says that names it; None where none does."""
    return next((told[name].strip() for told in environments if name in told), None)
