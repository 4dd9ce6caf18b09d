"""Why py-spy gave no stacks: its words to a kind, a reason and the one fix.

The deepest cause decides, not the headline: "Check that the process is running" is what py-spy
says both of a missing process and of a missing right. Texts: py-spy 0.3.14 to 0.4.3, and the
shells, launchers and limits that it is run under.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "process_gone_or_zombie",
    "permission",
    "not_python_or_unsupported",
    "pyspy_too_old",
    "native_unavailable",
    "bad_flags",
    "target_stopped_or_traced",
    "transient",
    "tool_missing",
    "platform",
    "no_samples_idle",
    "bad_arguments",
    "timeout",
    "cancelled",  # by whoever asked
    "unknown",
]
Pattern = re.Pattern[str]

OLDEST_LACKING = (3, 12)  # the first Python that py-spy 0.3.14 does not know
NEWEST_LIKELY = (3, 40)  # beyond it the version was misread: nobody runs Python 7.32
STATUS_USAGE, STATUS_PANIC = 2, 101
STATUS_NOT_RUN, STATUS_NOT_FOUND = 126, 127
STATUS_LIMIT, STATUS_KILLED = 124, 137  # of timeout(1): its own limit, and its SIGKILL
MOST_CHARACTERS = 200  # of py-spy's own words
_LONGEST_END = 4_000  # of its error text that is looked at: headline and deepest cause


@dataclass(frozen=True, slots=True)
class PySpyError:
    """Why there are no stacks. *command* is to be copied; *again*: one more try may do."""

    kind: Kind
    reason: str
    fix: str
    command: str | None = None
    again: bool = False


def classify(
    text: str, *, status: int | None, mode: str = "plain", timed_out: bool = False
) -> PySpyError:
    """What py-spy's standard error *text* and exit *status* mean.

    *status* is negative for a signal and None where it is not known; *mode* is the one that was
    asked for ("plain", "native", "nonblocking"); *timed_out*: we ended it at our deadline.
    """
    said = _before_the_backtrace(text)
    killed = status == STATUS_KILLED and said in ("", "Killed")
    if timed_out or killed or status == STATUS_LIMIT or _OVER_TIME.search(said):
        return TOO_SLOW_NATIVE if mode.startswith("native") else TOO_SLOW
    if status in (STATUS_NOT_FOUND, STATUS_NOT_RUN) and not _NOT_THE_TOOL.search(said):
        return MISSING
    for pattern, error in _HEADLINES:
        if pattern.search(said):
            return error
    return _by_deepest_cause(said) or _by_version(said) or _by_status(said, status)


def _before_the_backtrace(text: str) -> str:
    """*text* without colours and what is for py-spy's programmers; its middle is cut."""
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    said = re.split(r"(?im)^[ \t]*stack backtrace:", plain, maxsplit=1)[0].strip()
    if len(said) > 2 * _LONGEST_END:
        said = f"{said[:_LONGEST_END]}\n{said[-_LONGEST_END:]}"
    return said


def _by_deepest_cause(said: str) -> PySpyError | None:
    """From the last line, where the deepest cause stands, up to the headline."""
    for line in reversed(said.splitlines()):
        for pattern, error in _CAUSES:
            if pattern.search(line):
                return error
    return None


def _by_version(said: str) -> PySpyError | None:
    if not (told := re.search(r"Unsupported version of [Pp]ython:? *v?(\d+)\.(\d+)", said)):
        return None
    version = int(told[1]), int(told[2])
    return TOO_OLD if OLDEST_LACKING <= version <= NEWEST_LIKELY else UNREADABLE_VERSION


def _by_status(said: str, status: int | None) -> PySpyError:
    if status == STATUS_USAGE:
        return BAD_ARGUMENTS
    if status == STATUS_PANIC or (status is not None and status < 0):
        return BROKEN_OFF
    words = own_words(said)
    reason = f"py-spy says: {words}" if words else "py-spy gave no stacks and no reason."
    return PySpyError("unknown", reason, "Try once more; /proc still tells state and wait channel.")


def own_words(text: str) -> str:
    """py-spy's own headline and deepest cause on one printable line, cut; empty for none."""
    lines = [line.strip() for line in _before_the_backtrace(text).splitlines()]
    told = [line for line in lines if line and line != "Caused by:"]
    ends = [told[0], told[-1]] if len(told) > 1 and told[0] != told[-1] else told[:1]
    line = " – ".join(re.sub(r"^(?:Error: |\d+: )", "", end) for end in ends)
    shown = "".join(char for char in line if char.isprintable())
    return shown if len(shown) <= MOST_CHARACTERS else f"{shown[: MOST_CHARACTERS - 1]}…"


# One for each thing that a person can do about it -----------------------------------------------

TOO_SLOW = PySpyError(
    "timeout",
    "py-spy was not done within its time and was ended.",
    "Look whether the process is in state D or frozen; then take it with --nonblocking.",
)
TOO_SLOW_NATIVE = PySpyError(
    "timeout",
    "py-spy was not done with the native stacks within its time and was ended.",
    "Take it without --native.",
)
MISSING = PySpyError(
    "tool_missing",
    "py-spy is not installed here, or cannot be run.",
    "Install py-spy beside the agent; the server's own environment needs none.",
    "pip install 'py-spy>=0.4.1'",
)
GONE = PySpyError(
    "process_gone_or_zombie",
    "There is no such process here, or it is a zombie.",
    "Find out how it ended: the server's log, and the kernel log.",
    "dmesg -T | grep -iE 'killed process|segfault|xid'",
)
NOT_ALLOWED = PySpyError(
    "permission",
    "py-spy has no right to look into this process.",
    "Give the agent the capability CAP_SYS_PTRACE, in Kubernetes under "
    "securityContext.capabilities.add; being root alone is not enough in a container.",
    "grep -E 'CapEff|Seccomp' /proc/self/status; cat /proc/sys/kernel/yama/ptrace_scope",
)
OTHER_USER = PySpyError(
    "permission",
    "The process belongs to another user, or lets itself not be looked into.",
    "Run the agent as the user of the server, or with the capability CAP_SYS_PTRACE.",
)
IN_DOCKER = PySpyError(
    "permission",
    "The container that py-spy runs in has no right to look into processes.",
    "Start the agent's container with the capability SYS_PTRACE.",
    "docker run --cap-add SYS_PTRACE …",
)
NO_CONTAINER = PySpyError(
    "process_gone_or_zombie",
    "The container or pod that was named is not there, or does not run.",
    "Look which ones run, and how this one ended.",
    "kubectl get pods; docker ps --all",
)
PAUSED = PySpyError(
    "target_stopped_or_traced",
    "The container is paused, and with it every process in it.",
    "Find out who paused it; from the host, take the stacks with --nonblocking.",
)
NO_ENTRY = PySpyError(
    "permission",
    "The cluster or the container engine lets this user start nothing in there.",
    "Ask for that right (pods/exec, or the group of the engine), or use the agent on the host.",
)
NO_PASSWORD = PySpyError(
    "permission",
    "A password was asked for, and nobody was there to give it.",
    "Run it in a terminal, or use the agent, which asks for none.",
)
NOT_PYTHON = PySpyError(
    "not_python_or_unsupported",
    "py-spy finds no Python in this process, or one newer than it knows.",
    "Check that this is the rank itself and not its launcher or shell; if it is, use a newer "
    "py-spy.",
)
NO_INTERPRETER = PySpyError(
    "not_python_or_unsupported",
    "py-spy cannot find the interpreter in the memory of this process: it is embedded or "
    "stripped, or one thread is more than 4096 calls deep.",
    "Try once more; if it stays so, take the native stacks with gdb.",
    again=True,
)
FREE_THREADED = PySpyError(
    "not_python_or_unsupported",
    "This is a Python without a global lock, which py-spy does not support.",
    "Take the native stacks with gdb.",
)
UNREADABLE_VERSION = PySpyError(
    "not_python_or_unsupported",
    "py-spy could not read which Python this is: what it read is no version that it knows.",
    "Check that this is the rank itself and not its launcher; if it is, use a newer py-spy.",
)
TOO_OLD = PySpyError(
    "pyspy_too_old",
    "This py-spy is older than the Python of the process.",
    "Install a newer py-spy beside the agent: 0.4.0 and later know Python 3.12 and 3.13.",
    "pip install --upgrade 'py-spy>=0.4.1'",
)
NO_NATIVE = PySpyError(
    "native_unavailable",
    "py-spy cannot read the native stacks of this process.",
    "Take it without --native.",
)
BAD_FLAGS = PySpyError(
    "bad_flags",
    "py-spy was given flags that exclude each other.",
    "Leave out --native where --nonblocking is needed.",
)
BAD_ARGUMENTS = PySpyError(
    "bad_arguments",
    "py-spy was called wrongly: the process number is missing or is no number.",
    "Give the number of a running process.",
)
STOPPED = PySpyError(
    "target_stopped_or_traced",
    "py-spy cannot pause the process: it is stopped, or another debugger is on it.",
    "Take it with --nonblocking, which is exact while nothing moves.",
    again=True,
)
IN_FLUX = PySpyError(
    "transient",
    "The memory of the process changed while py-spy read it.",
    "Try once more.",
    again=True,
)
NO_MEANS = PySpyError(
    "transient",
    "The host had no memory or file descriptors left for py-spy.",
    "Try once more, when the host has some to spare.",
    again=True,
)
BROKEN_OFF = PySpyError(
    "transient",
    "py-spy itself broke off or was killed.",
    "Try once more; if it happens again, use a newer py-spy.",
    again=True,
)
NO_SYSTEM_CALL = PySpyError(
    "platform",
    "The kernel here does not let one process read another's memory.",
    "Run the agent on the host itself: sandboxed kernels such as gVisor cannot do it.",
)
WRONG_MACHINE = PySpyError(
    "platform",
    "This py-spy was built for another kind of machine or C library.",
    "Install the py-spy made for this machine.",
)
IDLE = PySpyError(
    "no_samples_idle",
    "The process only waited: without --idle, py-spy counts no waiting thread.",
    "Use `dump`, or record with --idle.",
)


def _rules(*rules: tuple[str, PySpyError]) -> tuple[tuple[Pattern, PySpyError], ...]:
    return tuple((re.compile(pattern), error) for pattern, error in rules)


_WRONG_MACHINE = re.compile(
    r"(?i)exec format error|GLIBC\S* not found|wrong ELF class|qemu: uncaught target signal"
)
_NOT_THE_TOOL = re.compile(rf"{_WRONG_MACHINE.pattern}|permission denied while trying to connect")
_OVER_TIME = re.compile(r"TimeoutExpired|timed out after \d")  # Python's subprocess
# A shell says in its own language that there is no such command; one line, and nothing more.
_NO_COMMAND = (
    r"(?i)^\S*(sh|env|sudo)(: line \d+)?(: \d+)?: ['‘\"]?\S*py-?spy['’\"]? ?: "
    r"(?!.*(os error|denied|permit|version))[^\n]+$(?!\n)|command not found: \S*py-?spy"
    r"|no such file or directory: ['\"]?\S*py-?spy|['\"]py-?spy['\"]: executable file not found"
    r"|['\"]py-?spy['\"] is not recognized|no module named py_?spy"
    r"|command terminated with exit code 12[67]"
)

# "Operation not permitted" and "Permission denied", as the C library says them elsewhere.
_NOT_PERMITTED = (
    r"(?i)not permitted|operation nicht (gestattet|erlaubt|zulässig)|keine berechtigung"
    r"|opération non (permise|autorisée)|permission non accordée|operación no permitida"
    r"|permiso denegado|不允许的操作|权限不够|許可されていない操作|許可がありません"
)

# Whatever stands below them.
_HEADLINES = _rules(
    (_WRONG_MACHINE.pattern, WRONG_MACHINE),
    (r"(?i)permission denied while trying to connect|is forbidden: |\(Forbidden\)", NO_ENTRY),
    (r"(?i)^sudo: .*password", NO_PASSWORD),
    (r"(?i)no such container|container \S+ is not running|container not found", NO_CONTAINER),
    (r"(?i)\(NotFound\): pods|pods? .{0,300} not found", NO_CONTAINER),
    (r"(?i)container \S+ is paused", PAUSED),
    (r"(?i)py-?spy['’\"]?: .{0,300}(not found|no such file)", MISSING),
    (_NO_COMMAND, MISSING),
    (r"(?i)native stack traces with the --nonblocking|cannot be used with", BAD_FLAGS),
    (r"(?i)failed to get os_?\s?thread[ _]?id|merge native and python", NO_NATIVE),
    (r"(?i)UNW_E[A-Z]+|unwind|'--native'", NO_NATIVE),
    (r"(?i)invalid pid|ParseIntError|value is required|unexpected argument", BAD_ARGUMENTS),
    (r"(?i)requires a value|wasn't expected|invalid value|required arguments", BAD_ARGUMENTS),
    (r"(?i)unrecognized subcommand", BAD_ARGUMENTS),
    (r"(?i)No stack counts found|Samples: 0 Errors: 0", IDLE),
    (r"(?i)running in a docker container|SYS_PTRACE", IN_DOCKER),
    (r"(?i)elevated permissions|requires root", OTHER_USER),
    (r"(?is)Failed to suspend process.*(EPERM|Operation not permitted)", STOPPED),
)

# Line by line from the deepest, so that "Permission denied" wins over what it made fail.
_CAUSES = _rules(
    (r"(?i)os error (1|13)\)|(permission|access is) denied|\bE(PERM|ACCES)\b", NOT_ALLOWED),
    (_NOT_PERMITTED, NOT_ALLOWED),
    (r"(?i)os error (2|3)\)|\bESRCH\b|no such (process|file)|process (has )?exited", GONE),
    (r"(?i)os error 38\)|\bENOSYS\b|not implemented|unsupported (os|platform)", NO_SYSTEM_CALL),
    (r"(?i)os error (11|12|23|24)\)|\bENOMEM\b|\bEMFILE\b|\bEAGAIN\b", NO_MEANS),
    (r"(?i)Failed to suspend|unexpected waitpid|PtraceEvent|already traced", STOPPED),
    (r"(?i)os error (5|14)\)|bad address|\bEFAULT\b|\bEIO\b|partial(ly)? read", IN_FLUX),
    (r"(?i)gil_?thread_?id|free-?threaded", FREE_THREADED),
    (r"(?i)python interpreter in|find (the )?interpreter|interpreter state", NO_INTERPRETER),
    (r"(?i)find python version|(find|locate) (a )?(python|_?py_?runtime)|not a python", NOT_PYTHON),
    (r"(?i)failed to copy|failed to (read|get) (frame|stack|thread)|utf-?8", IN_FLUX),
)
