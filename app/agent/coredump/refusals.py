"""Why no coredump was asked for, each with the one fix: refusals in the words of the page."""

from shlex import quote

from app.agent.evidence.sizes import seconds_text, size_text
from app.domain.cuda_settings import ENABLE
from app.errors import Conflict, Throttled

_TRIGGER = "incident-console coredump trigger --pid"


def wrong_name(host: str) -> Conflict:
    return Conflict(
        "The name that was typed is not the name of this host.",
        why="A coredump halts the GPUs of the process while it is written.",
        fix=f"Type {host} if this is the host you mean.",
    )


def not_enabled(pid: int) -> Conflict:
    return Conflict(
        f"Process {pid} was started without coredumps on demand.",
        why="The driver makes its pipe when CUDA starts, so the running process cannot get one.",
        fix=f"Restart the server with {ENABLE}=1 set; until then take stacks.",
        command="incident-console launch-env --crash-dump-folder DIR",
    )


def pipe_missing(pid: int, *, cuda_loaded: bool | None) -> Conflict:
    if cuda_loaded is False:
        return Conflict(
            f"Process {pid} has not loaded CUDA, so it has no coredump pipe yet.",
            why="The driver makes the pipe when CUDA starts.",
            fix="Ask again once the server is up, or pick the process that uses the GPU.",
        )
    return Conflict(
        f"Process {pid} has no coredump pipe open.",
        why="The variable may be set here but not in that process, or was set after CUDA started.",
        fix=f"Look for {ENABLE} in its environment; if it is not there, restart with it set to 1.",
        command=f"tr '\\0' '\\n' < /proc/{pid}/environ | grep CUDA_",
    )


def no_reader(path: str) -> Conflict:
    return Conflict(
        f"Nobody reads the pipe {path}.",
        why="It is left over from a process that has ended, or the driver has let go of it.",
        fix=f"Restart the server with {ENABLE}=1 set to get a pipe that is read.",
    )


def not_a_pipe(path: str, found: str) -> Conflict:
    return Conflict(
        f"Where the pipe should be, {path} is {found}.",
        why="Nothing was written to it: only a pipe that the process itself reads is used.",
        fix="Find out who made it; a restart with another CUDA_COREDUMP_PIPE gets a new pipe.",
        command=f"ls -l {quote(path)}",
    )


def several_pipes(links: list[str]) -> Conflict:
    return Conflict(
        f"The process reads {len(links)} pipes that could be it: {', '.join(links)}.",
        why="Which one is the driver's cannot be told, and the other must not be written to.",
        fix="Restart with CUDA_COREDUMP_PIPE set to one path of its own.",
    )


def pipe_of_another(path: str, owner: int, expected: int) -> Conflict:
    return Conflict(
        f"The pipe {path} belongs to user {owner}, the process runs as user {expected}.",
        why="A pipe that somebody else made is not the driver's.",
        fix="Find out who made it, before anything is written to it.",
        command=f"ls -l {quote(path)}",
    )


def pipe_changed(path: str) -> Conflict:
    return Conflict(
        f"The pipe {path} was replaced between finding and opening it.",
        why="Nothing was written.",
        fix="Look at the process again, then ask again.",
    )


def no_permission(pid: int, owner: int | None) -> Conflict:
    who = f"user {owner}" if owner is not None else "its owner"
    return Conflict(
        f"The agent may not use the coredump pipe of process {pid}.",
        why="Permission denied.",
        fix=f"Run this as {who}, the owner of the process, or as root.",
        command=f"sudo -u '#{owner}' {_TRIGGER} {pid}" if owner is not None else None,
    )


def pipe_full(path: str) -> Conflict:
    return Conflict(
        f"An earlier trigger still waits unread in {path}.",
        why="The driver's thread does not read its pipe: it is stuck, or a dump is under way.",
        fix="Do not trigger again. Take stacks, and look for a coredump that is growing.",
    )


def not_cuda(pid: int) -> Conflict:
    return Conflict(
        f"Process {pid} runs on AMD GPUs, not on CUDA.",
        why="GPU coredumps of ROCm are taken by another handler and have no pipe.",
        fix="Take stacks, or use rocgdb on the process.",
        command=f"rocgdb -p {pid}",
    )


def not_running(pid: int, state: str) -> Conflict:
    return Conflict(
        f"Process {pid} is stopped (state {state}).",
        why="Its driver thread cannot read the pipe; the dump would start when it goes on.",
        fix="Take stacks: they work on a stopped process.",
    )


def traced(pid: int, tracer: int) -> Conflict:
    return Conflict(
        f"Process {tracer} is debugging process {pid}.",
        why="NVIDIA supports no other tool on a process while its GPUs are dumped.",
        fix="Wait until that tool is done, then ask again.",
        command=f"ps -fp {tracer}",
    )


def under_mps(server: int) -> Conflict:
    return Conflict(
        f"nvidia-cuda-mps-server (process {server}) serves this user.",
        why="A client of MPS that dumps makes every other client of that server fail.",
        fix="Move the load away and dump without MPS.",
    )


def to_a_command() -> Conflict:
    return Conflict(
        "CUDA_COREDUMP_FILE sends the dump into a command.",
        why="Where that puts it cannot be told, so its end could not be watched.",
        fix="Restart with CUDA_COREDUMP_FILE set to a path.",
    )


def to_a_pipe(path: str) -> Conflict:
    return Conflict(
        f"CUDA_COREDUMP_FILE is {path}, which is no regular file.",
        why="The dump would be streamed to whoever reads it, and its end could not be watched.",
        fix="Restart with CUDA_COREDUMP_FILE set to a path of its own.",
    )


def no_file_by_flag(flag: str) -> Conflict:
    return Conflict(
        f"CUDA_COREDUMP_GENERATION_FLAGS contains {flag}.",
        why="With it the driver writes no usable file on demand.",
        fix=f"Restart without {flag}.",
    )


def dump_running(what: str) -> Conflict:
    return Conflict(
        f"A coredump is being written already: {what}.",
        why="A second trigger may queue a second dump, and two at once fill the disk.",
        fix="Wait until it is done. Do not trigger again.",
    )


def disk_too_full(folder: str, *, free_bytes: int, needed_bytes: int, reason: str) -> Conflict:
    return Conflict(
        f"{size_text(free_bytes)} are free in {folder}; {size_text(needed_bytes)} must be.",
        why=f"{reason} The driver cannot be told to stop, and a full disk ruins the dump.",
        fix="Free space there first.",
        command=f"df -h {quote(folder)}",
    )


def too_soon(age_seconds: float, pause_seconds: float) -> Throttled:
    return Throttled(
        f"This process was asked for a coredump {seconds_text(age_seconds)} ago.",
        retry_after_seconds=round(pause_seconds - age_seconds) + 1,
        fix=f"One in {seconds_text(pause_seconds)} is the limit: an earlier one may still come.",
    )


def no_folder(path: str) -> Conflict:
    return Conflict(
        f"The folder {path} of CUDA_COREDUMP_FILE does not exist.",
        why="The driver makes no folder; it would write nothing.",
        fix="Make the folder, writable for the user of the process, then ask again.",
        command=f"mkdir -p {quote(path)}",
    )
