"""The end of a server's log: the file that its standard output and error go to.

Only a file that the server itself writes to is read, and only as the open file that it holds:
its path may mean another file by now, or one of another container.
"""

import os
import stat
from collections.abc import Iterator

from app.agent.evidence.redacting import safe_log
from app.agent.kept.files import AgentFiles
from app.agent.processes.proc import Descriptor, cgroup, descriptors, pid_of, read_status
from app.agent.touching.pinned import effective_uid, pinned, reopened
from app.errors import ConsoleError, Rejected
from app.protocol.messages import FileTaken, Refusal, Server

TAIL_BYTES = 256 * 1024
_OUTPUTS = {1: "standard output", 2: "standard error"}
_WRITTEN = (os.O_WRONLY, os.O_RDWR)


def take_log_tails(server: Server, *, files: AgentFiles) -> tuple[list[FileTaken], list[Refusal]]:
    """The last 256 KiB of each file that *server* logs to, and why where there is none."""
    taken, refused, seen = [], [], set()
    for output in _outputs(server):
        try:
            tail, inode = _tail(pid_of(server.id), output)
        except ConsoleError as error:
            refused.append(_refusal(server, error))
            continue
        if inode not in seen:
            seen.add(inode)
            taken.append(_kept(server, output, tail, files))
    return taken, _distinct(refused)


def _outputs(server: Server) -> Iterator[Descriptor]:
    held = {one.number: one for one in descriptors(pid_of(server.id))}
    for number in _OUTPUTS:
        yield held.get(number, Descriptor(number, "", None))


def _tail(pid: int, output: Descriptor) -> tuple[bytes, tuple[int, int]]:
    """The last bytes, beginning with a whole line, and which file it was; raises Rejected."""
    if not output.link:
        raise Rejected(
            "Where its output goes cannot be read.",
            fix="Let the agent run as root or as the owner of the server.",
        )
    try:
        with pinned(pid, output.number) as (pin, found):
            _check(pid, output, found)
            return _last_lines(reopened(pin, os.O_RDONLY)), (found.st_dev, found.st_ino)
    except OSError as error:
        raise Rejected(
            f"Its log cannot be opened: {error.strerror or error}.",
            fix="Let the agent run as root or as the owner of the log.",
        ) from error


def _check(pid: int, output: Descriptor, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _no_file(pid, output)
    if output.flags is None or output.flags & os.O_PATH or output.flags & 3 not in _WRITTEN:
        # A server could point its output at a file that only we may read.
        raise Rejected(f"Its {_OUTPUTS[output.number]} is a file that it does not write to.")
    owner = effective_uid(read_status(pid))
    if found.st_uid not in (owner, 0):
        raise Rejected(
            f"Its log belongs to uid {found.st_uid}, the server runs as uid {owner}.",
            fix="Read the log by hand.",
        )


def _no_file(pid: int, output: Descriptor) -> Rejected:
    name = _OUTPUTS[output.number]
    if output.link.startswith(("pipe:", "socket:")):
        return Rejected(
            f"Its {name} goes into a pipe: whoever started it has its log.",
            fix="Ask the container runtime or the service manager for it.",
            command=_command(pid),
        )
    if output.link == "/dev/null":
        return Rejected(
            f"Its {name} is thrown away.", fix="Start the server with its output in a file."
        )
    return Rejected(f"Its {name} goes to a terminal or a device, which cannot be read back.")


def _command(pid: int) -> str:
    """Who has the log shows in where the server runs; a pod is the usual case."""
    group = cgroup(pid) or ""
    if "kubepods" in group:
        return "kubectl logs POD --tail 5000; kubectl logs POD --tail 5000 --previous"
    if "docker" in group:
        return "docker logs --tail 5000 CONTAINER"
    return f"journalctl _PID={pid} -n 5000"


def _last_lines(descriptor: int) -> bytes:
    """The end of the file; a line that is cut at its begin is left out.

    Its missing begin may have been what says that the rest is a prompt.
    """
    with os.fdopen(descriptor, "rb") as log:
        size_bytes = os.fstat(descriptor).st_size
        start = max(0, size_bytes - TAIL_BYTES)
        log.seek(start)
        tail = log.read(TAIL_BYTES)
    if start == 0:
        return tail
    _, _, whole = tail.partition(b"\n")
    return whole


def _kept(server: Server, output: Descriptor, tail: bytes, files: AgentFiles) -> FileTaken:
    text, masked = safe_log(tail.decode("utf-8", "replace"))
    return files.keep(
        text.encode(),
        name=f"log-{pid_of(server.id)}-{_OUTPUTS[output.number].replace(' ', '-')}.txt",
        kind="log tail",
        process_id=server.id,
        redacted=masked,
    )


def _refusal(server: Server, error: ConsoleError) -> Refusal:
    return Refusal(
        process_id=server.id,
        kind="no log",
        reason=error.what,
        fix=error.fix,
        command=error.command,
    )


def _distinct(refused: list[Refusal]) -> list[Refusal]:
    """Both outputs usually go to one place."""
    return list({one.fix: one for one in refused}.values())
