"""Whether a CUDA coredump of a process can be triggered now. Looks; opens no pipe.

What a trigger asks right before it acts is asked here as well, in the same words.
"""

import os
from collections.abc import Sequence

from app.agent.coredump.dump_folders import likely_folders, open_folders
from app.agent.coredump.endings import Limits
from app.agent.coredump.gate import (
    Environment,
    check_process,
    check_room,
    check_settings,
    uses_of,
)
from app.agent.coredump.pipes import Pipe, Uses, find_pipe
from app.agent.coredump.refusals import no_permission, pipe_missing
from app.agent.evidence.sizes import size_text
from app.agent.processes.proc import mapped
from app.errors import Conflict, ConsoleError, NotFound
from app.protocol.messages import Check, Process

_GPU_LIBRARIES = ("libcuda.so", "libamdhip64", "libhsa-runtime64")


def coredump_check(
    process: Process, root: Process | None = None, told: Sequence[Environment] = ()
) -> Check:
    """Ready when the driver reads a pipe that the agent may write to, and there is room.

    *root* is that of its server, and *told* what its resource trackers were started with: both
    tell what its own environment, wiped by its title, does not. Whether the driver then writes a
    dump is known only after the trigger.
    """
    try:
        uses = uses_of(process.pid, (root or process).pid, told)
        check_process(uses)
        check_settings(uses)
        pipe = _pipe(uses)
        _check_writable(pipe)
        _check_room(uses, pipe, process)
    except (NotFound, Conflict) as error:
        return Check(
            capability="coredump",
            ready=False,
            says=_refused(process, error),
            fix=error.fix or "Look again.",
            command=error.command,
        )
    return Check(capability="coredump", ready=True, says=_says(uses, pipe, process))


def _refused(process: Process, error: ConsoleError) -> str:
    """Without the pid: the same reason of several ranks is to be the same words."""
    what = error.what.replace(f"Process {process.pid} ", "It ", 1)
    return f"{what} {error.why}" if error.why else what


def _pipe(uses: Uses) -> Pipe:
    try:
        return find_pipe(uses)
    except Conflict:
        # A restart with the variable set would not help where there is no CUDA at all.
        if not uses.settings.enabled and mapped(uses.pid, *_GPU_LIBRARIES) == set():
            raise pipe_missing(uses.pid, cuda_loaded=False) from None
        raise


def _check_writable(pipe: Pipe) -> None:
    """By its mode alone: a writer that comes and goes would be the end of file to the driver."""
    path = f"/proc/{pipe.pid}/fd/{pipe.number}"
    if not os.access(path, os.W_OK, effective_ids=True):
        raise no_permission(pipe.pid, pipe.owner)


def _check_room(uses: Uses, pipe: Pipe, process: Process) -> None:
    folders = open_folders(uses.pid, likely_folders(uses, pipe.path), ours=False)
    try:
        check_room(uses, folders, process, Limits(), 0)
    finally:
        for folder in folders:
            os.close(folder.descriptor)


def _says(uses: Uses, pipe: Pipe, process: Process) -> str:
    in_use = sum(gpu.used_bytes or 0 for gpu in process.gpus or [])
    if uses.settings.flags is None:
        memory = "Whether GPU memory is left out cannot be read."
    elif uses.settings.skips_memory:
        memory = "GPU memory is left out."
    else:
        memory = f"GPU memory is in it{f', {size_text(in_use)}' if in_use else ''}."
    return f"The driver reads {pipe.path}. {memory} Whether it writes is seen after a trigger."
