"""What this agent may do on its host: capabilities, Yama, seccomp, and py-spy tried on ourselves.

The kernel's numbers say what should work; a dump of a child of ours says what does.
"""

import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from app.agent.processes.proc import PROC, read_bytes, read_status
from app.agent.touching.tools import find_tool, run_tool
from app.domain.pyspy_errors import MISSING, PySpyError, classify

OLDEST_PYSPY = (0, 4, 1)  # as the package asks for; older ones know fewer Pythons
KEEP_SECONDS = 300.0  # a right is given once, not between two looks
VERSION_SECONDS, DUMP_SECONDS, CHILD_SECONDS = 5.0, 10.0, 10.0
_CHILD = "import time; print('ready', flush=True); time.sleep(60)"

# Bits of linux/capability.h, those that a diagnosis can need.
_CAPABILITIES = {
    1: "CAP_DAC_OVERRIDE",
    2: "CAP_DAC_READ_SEARCH",
    5: "CAP_KILL",
    7: "CAP_SETUID",
    12: "CAP_NET_ADMIN",
    18: "CAP_SYS_CHROOT",
    19: "CAP_SYS_PTRACE",
    21: "CAP_SYS_ADMIN",
    34: "CAP_SYSLOG",
    38: "CAP_PERFMON",
}
_SECCOMP = {"0": "off", "1": "strict", "2": "filter"}


@dataclass(frozen=True, slots=True)
class SelfTest:
    """A dump of a Python child of ours: whether py-spy may do its work here at all."""

    error: PySpyError | None  # None: it gave stacks
    seconds: float


@dataclass(frozen=True, slots=True)
class Rights:
    """As far as it can be told without a look at any server."""

    euid: int
    capabilities: frozenset[str]  # effective ones; of those unknown to us none
    ptrace_scope: int | None  # of Yama; None: no Yama, nothing is refused by it
    seccomp: str | None  # "off", "strict", "filter"
    pyspy: str | None  # its path
    pyspy_version: tuple[int, int, int] | None
    nsenter: str | None
    tried: SelfTest

    @property
    def pyspy_name(self) -> str:
        """ "py-spy 0.4.3", or without its version where it did not say."""
        return f"py-spy {_dotted(self.pyspy_version)}" if self.pyspy_version else "py-spy"

    @property
    def problem(self) -> PySpyError | None:
        """Why no stacks can be taken of anything here; None where the trial gave some."""
        if self.pyspy is None:
            return MISSING
        if self.pyspy_version is not None and self.pyspy_version < OLDEST_PYSPY:
            return PySpyError(
                "pyspy_too_old",
                f"{self.pyspy_name} is too old; it must be {_dotted(OLDEST_PYSPY)} or later.",
                "Install a newer py-spy beside the agent.",
                _install(),
            )
        if self.tried.error and self.tried.error.kind == "permission":
            return self._refused(self.tried.error)
        return self.tried.error

    def _refused(self, error: PySpyError) -> PySpyError:
        """*error* with the lock that is most likely shut named, the outermost first."""
        if self.ptrace_scope == 3:
            return PySpyError(
                "permission",
                "yama.ptrace_scope is 3: nobody may trace anything until the next boot.",
                "Set kernel.yama.ptrace_scope to 1 for the next boot.",
                "echo kernel.yama.ptrace_scope=1 | sudo tee /etc/sysctl.d/10-ptrace.conf",
            )
        if "CAP_SYS_PTRACE" in self.capabilities and self.seccomp == "filter":
            return PySpyError(
                "permission",
                "A seccomp filter refuses ptrace, although the agent has CAP_SYS_PTRACE.",
                "Run the agent with a seccomp profile that allows ptrace and process_vm_readv.",
                "docker run --security-opt seccomp=unconfined --cap-add SYS_PTRACE …",
            )
        return error


class Remembered:
    """What *look* said, for *keep_seconds*; one looks at a time, the others wait for it."""

    def __init__(self, look: Callable[[], Rights], keep_seconds: float = KEEP_SECONDS) -> None:
        self._look, self._keep_seconds = look, keep_seconds
        self._lock = Lock()
        self._said: Rights | None = None
        self._looked_at = 0.0

    def __call__(self) -> Rights:
        with self._lock:
            if self._said is None or time.monotonic() - self._looked_at > self._keep_seconds:
                self._said, self._looked_at = self._look(), time.monotonic()
            return self._said


def look_at_rights(root: Path = PROC) -> Rights:
    """What we may do now; takes as long as one py-spy dump, 15 s at most."""
    status = read_status(os.getpid(), root)
    pyspy = find_tool("py-spy")
    scope = (read_bytes(str(root / "sys/kernel/yama/ptrace_scope"), 16) or b"").strip()
    return Rights(
        euid=os.geteuid(),
        capabilities=capabilities(status.get("CapEff", "0")),
        ptrace_scope=int(scope) if scope.isdigit() else None,
        seccomp=_SECCOMP.get(status.get("Seccomp", "")),
        pyspy=pyspy,
        pyspy_version=_version(pyspy) if pyspy else None,
        nsenter=find_tool("nsenter"),
        tried=try_pyspy(pyspy) if pyspy else SelfTest(MISSING, 0.0),
    )


rights = Remembered(look_at_rights)


def capabilities(mask: str) -> frozenset[str]:
    """The names in *mask*, the hexadecimal CapEff of ``/proc/PID/status``."""
    try:
        bits = int(mask, 16)
    except ValueError:
        return frozenset()
    return frozenset(name for bit, name in _CAPABILITIES.items() if bits >> bit & 1)


def may_trace(pid: int, root: Path = PROC) -> bool | None:
    """Whether the kernel lets us attach to *pid*; None when it is gone.

    Opening ``/proc/PID/mem`` is checked as ptrace attach is (fs/proc/base.c), Yama included, and
    does nothing to the process: nothing is read.
    """
    try:
        os.close(os.open(f"{root}/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC))
    except PermissionError:
        return False
    except OSError:
        return None
    return True


def try_pyspy(pyspy: str) -> SelfTest:
    """Dump a Python child that we start for it, once more where it was caught in flux."""
    with _child() as pid:
        if pid is None:
            said = "Our own Python child did not start: py-spy was not tried."
            return SelfTest(PySpyError("unknown", said, "Look at the agent's log."), 0.0)
        began = time.monotonic()
        error = _dumped(pyspy, pid)
        if error and error.again:
            error = _dumped(pyspy, pid)
        return SelfTest(error, time.monotonic() - began)


def _dumped(pyspy: str, pid: int) -> PySpyError | None:
    argv = (pyspy, "dump", "--json", "--pid", str(pid))
    run = run_tool(argv, deadline_seconds=DUMP_SECONDS)
    if run.status == 0:  # never by what is on stdout: a failed dump has its header there
        return None
    said = run.err.decode(errors="replace")
    return classify(said, status=run.status, timed_out=run.timed_out)


@contextmanager
def _child() -> Iterator[int | None]:
    """The pid of a Python process that has started; None where that failed. Ended afterwards."""
    with subprocess.Popen(  # noqa: S603  (a list, our own interpreter)
        [sys.executable, "-I", "-S", "-c", _CHILD],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            yield child.pid if _has_started(child) else None
        finally:
            child.kill()


def _has_started(child: subprocess.Popen[bytes]) -> bool:
    assert child.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        return bool(selector.select(CHILD_SECONDS)) and bool(os.read(child.stdout.fileno(), 16))


def _version(pyspy: str) -> tuple[int, int, int] | None:
    run = run_tool((pyspy, "--version"), deadline_seconds=VERSION_SECONDS, max_bytes=4096)
    found = re.search(rb"(\d{1,4})\.(\d{1,4})\.(\d{1,4})", run.out)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _install() -> str:
    return f"{sys.executable} -m pip install 'py-spy>={_dotted(OLDEST_PYSPY)}'"


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))
