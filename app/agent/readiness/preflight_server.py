"""Of a server as a whole: its log, its own crash dump, and the time it gets to write it."""

import os
import stat
from pathlib import Path

from app.agent.processes.proc import PROC, cgroup, descriptors, pid_of, read_status
from app.agent.readiness.supervision import DOCKER_SECONDS, POD_SECONDS, Supervision
from app.agent.touching.pinned import effective_uid
from app.domain.crash_dump import ServerFacts, crash_dump, crash_path_seconds
from app.protocol.messages import Check, Server

_EXAMPLE_SECONDS = 90


def crash_dump_check(facts: ServerFacts) -> Check:
    """Whether the server writes its requests when it is told to crash."""
    outlook = crash_dump(facts)
    return Check(
        capability="crash dump",
        ready=outlook.ready,
        says=outlook.says,
        fix=outlook.fix,
        command=outlook.command,
    )


def grace_check(facts: ServerFacts, supervised: Supervision) -> Check:
    """Whether whoever ends the server waits for as long as its crash path takes."""
    needed, seconds = crash_path_seconds(facts.version), supervised.seconds
    if facts.engine != "sglang":
        says = "How long vLLM needs to end is not known."
        return Check(capability="grace period", ready=None, says=says)
    if seconds is None:
        return Check(
            capability="grace period",
            ready=None,
            says=f"{_waits_unknown(supervised)} The crash path needs {needed} s.",
            command=supervised.look,
        )
    if seconds >= needed:
        waits = "for ever" if seconds == float("inf") else f"{seconds:g} s"
        says = f"{supervised.by} waits {waits}; the crash path needs {needed} s."
        return Check(capability="grace period", ready=True, says=says)
    return Check(
        capability="grace period",
        ready=False,
        says=f"{supervised.by} kills it after {seconds:g} s; the crash path needs {needed} s.",
        fix=f"Set TimeoutStopSec={_EXAMPLE_SECONDS} in the [Service] section of {supervised.unit}.",
        command=f"sudo systemctl edit {supervised.unit}",
    )


def _waits_unknown(supervised: Supervision) -> str:
    match supervised.by:
        case "Kubernetes":
            return (
                f"The grace period of its pod is not seen from here; unset it is {POD_SECONDS} s."
            )
        case "a container runtime":
            return f"How long its container may take is not known; unset it is {DOCKER_SECONDS} s."
        case "nobody that can be seen":
            return "No unit and no container is seen that would end it."
        case unit:
            return f"systemctl does not say how long {unit} may take."


def log_check(server: Server, root: Path = PROC) -> Check:
    """Whether the agent can read the end of the server's log."""
    pid = pid_of(server.id)
    outputs = {one.number: one for one in descriptors(pid, root) if one.number in (1, 2)}
    if not outputs:
        return Check(
            capability="server log",
            ready=False,
            says="Where its output goes cannot be read.",
            fix="Let the agent run as root or as the owner of the server.",
        )
    for number, output in outputs.items():
        if _is_written(output.flags) and _is_its_file(pid, number, root):
            return Check(capability="server log", ready=True, says=f"It logs to {output.link}.")
    return _not_a_file(pid, outputs[max(outputs)].link, root)


def _not_a_file(pid: int, link: str, root: Path) -> Check:
    if link.startswith(("pipe:", "socket:")):
        return Check(
            capability="server log",
            ready=False,
            says="Its output goes into a pipe: whoever started it has its log.",
            fix="Save the log there.",
            command=_where(pid, root),
        )
    where = (
        "is thrown away" if link == "/dev/null" else f"goes to {link}, which is no log of its own"
    )
    return Check(
        capability="server log",
        ready=False,
        says=f"Its output {where}.",
        fix="Start the server with its output in a file.",
    )


def _where(pid: int, root: Path) -> str:
    group = cgroup(pid, root) or ""
    if "kubepods" in group:
        return "kubectl logs POD -n NAMESPACE --tail 5000"
    if "docker" in group:
        return "docker logs --tail 5000 CONTAINER"
    return f"journalctl _PID={pid} -n 5000"


def _is_written(flags: int | None) -> bool:
    return flags is not None and flags & os.O_ACCMODE in (os.O_WRONLY, os.O_RDWR)


def _is_its_file(pid: int, number: int, root: Path) -> bool:
    """Whether it is a regular file of the server's user or of root, as the log tail asks for."""
    try:
        found = os.stat(f"{root}/{pid}/fd/{number}")  # noqa: PTH116  (through the magic link)
    except OSError:
        return False
    owner = effective_uid(read_status(pid, root))
    return stat.S_ISREG(found.st_mode) and found.st_uid in (owner, 0)
