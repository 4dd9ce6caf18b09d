"""What the host as a whole allows: py-spy, free space, the kernel's log, a clock that is kept."""

from collections.abc import Iterator
from datetime import datetime

from app.agent.evidence.clock import clock_fact
from app.agent.evidence.kernel_log import read_kernel_log
from app.agent.evidence.sizes import size_text
from app.agent.kept.files import AgentFiles
from app.agent.readiness.rights import Rights
from app.domain.counting import counted
from app.errors import NoSpace
from app.protocol.messages import Check

NEEDED_BYTES = 256 * 1024**2  # stacks of a large server, several times; coredumps lie elsewhere


def host_checks(rights: Rights, files: AgentFiles, now: datetime) -> list[Check]:
    """Those that hold for every process of the host."""
    return [
        _stacks(rights),
        free_space_check(files),
        _kernel_log(),
        _clock(now),
    ]


def _stacks(rights: Rights) -> Check:
    if problem := rights.problem:
        return Check(
            capability="stacks",
            ready=False,
            says=problem.reason,
            fix=problem.fix,
            command=problem.command,
        )
    says = f"{rights.pyspy_name} gave the stacks of a Python process of ours. "
    return Check(capability="stacks", ready=True, says=says + " ".join(_reach(rights)))


def _reach(rights: Rights) -> Iterator[str]:
    """Of whom else, as far as the kernel's settings tell."""
    if "CAP_SYS_PTRACE" in rights.capabilities:
        yield "The agent may trace other users' processes."
    else:
        yield f"Without CAP_SYS_PTRACE it may trace processes of user {rights.euid} only."
        if rights.ptrace_scope:
            yield f"yama.ptrace_scope is {rights.ptrace_scope}: fewer still."
    if rights.nsenter is None:
        yield "nsenter is absent: no native stacks inside containers."


def free_space_check(files: AgentFiles) -> Check:
    """Whether there is room for what the agent keeps."""
    try:
        files.room(NEEDED_BYTES)
    except NoSpace as error:
        return Check(capability="free space", ready=False, says=error.what, fix=error.fix)
    says = f"There is room for {size_text(NEEDED_BYTES)} of stacks and facts."
    return Check(capability="free space", ready=True, says=says)


def _kernel_log() -> Check:
    log = read_kernel_log()
    if log is None:
        return Check(
            capability="host facts",
            ready=False,
            says="The kernel log cannot be read: neither Xid errors nor memory kills would show.",
            fix="Give the agent CAP_SYSLOG, or allow everybody to read it.",
            command="sudo sysctl kernel.dmesg_restrict=0",
        )
    says = f"The kernel log can be read from {log.source}: {counted(len(log.lines), 'line')}."
    return Check(capability="host facts", ready=True, says=says)


def _clock(now: datetime) -> Check:
    fact = clock_fact(now)
    ready = {"good": True, "warn": False}.get(fact.level)
    if ready is not False:
        return Check(capability="clock", ready=ready, says=fact.says)
    return Check(
        capability="clock",
        ready=False,
        says=fact.says,
        fix="Start a time service: times of several hosts are compared.",
        command="sudo timedatectl set-ntp true",
    )
