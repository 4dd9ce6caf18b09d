"""Whether stacks, native stacks and a CPU profile can be had of a process, without taking any."""

from pathlib import Path

from app.agent.processes.proc import PROC
from app.agent.readiness.rights import Rights, may_trace
from app.agent.stacks.pyspy_calls import ENTERING
from app.agent.stacks.stillness import Stance, stance
from app.agent.touching.tools import find_tool
from app.domain.pyspy_errors import GONE, NOT_ALLOWED, OTHER_USER, PySpyError
from app.protocol.messages import Capability, Check, Process

_ENDED = frozenset("ZXx")


def stack_checks(process: Process, rights: Rights, root: Path = PROC) -> list[Check]:
    """Stacks, native stacks and CPU profile, in this order."""
    stands = stance(process.pid, root)
    refused = _refused(process, stands, rights, root)
    if refused or stands is None:
        why = refused or GONE
        return [_not(name, why) for name in ("stacks", "native stacks", "cpu profile")]
    return [_stacks(stands, rights), _native(process, stands, rights), _profile(stands, rights)]


def _refused(
    process: Process, stands: Stance | None, rights: Rights, root: Path
) -> PySpyError | None:
    if rights.problem:
        return rights.problem
    if stands is None or stands.stat.state in _ENDED:
        return GONE
    may = may_trace(process.pid, root)
    if may is None:
        return GONE
    if may:
        return None
    return OTHER_USER if process.uid not in (None, rights.euid) else NOT_ALLOWED


def _stacks(stands: Stance, rights: Rights) -> Check:
    says = f"{rights.pyspy_name} works here and may trace it."
    if stands.cannot_be_paused:
        torn = "exact, as nothing moves" if stands.unmoved else "possibly torn"
        says = f"It is {stands.cannot_be_paused}: taken without a pause, {torn}."
    return Check(capability="stacks", ready=True, says=says)


def _native(process: Process, stands: Stance, rights: Rights) -> Check:
    if stands.cannot_be_paused:
        return Check(
            capability="native stacks",
            ready=False,
            says=f"It is {stands.cannot_be_paused}: py-spy cannot pause it for native stacks.",
            fix="Take plain stacks, which need no pause.",
        )
    if process.own_pid_namespace is None:
        return Check(
            capability="native stacks",
            ready=None,
            says="Its pid namespace cannot be read: whether native stacks work is not known.",
        )
    if not process.own_pid_namespace:
        return Check(
            capability="native stacks", ready=True, says=f"{rights.pyspy_name} may trace it."
        )
    return _native_in_its_namespace(rights)


def _native_in_its_namespace(rights: Rights) -> Check:
    absent = [name for name in ENTERING if find_tool(name) is None]
    if absent or "CAP_SYS_ADMIN" not in rights.capabilities:
        lacks = f"{absent[0]} is not installed" if absent else "the agent lacks CAP_SYS_ADMIN"
        return Check(
            capability="native stacks",
            ready=False,
            says=f"It has a pid namespace of its own, and {lacks}.",
            fix="Run the agent inside that pid namespace, as a sidecar of the pod for example.",
        )
    return Check(
        capability="native stacks",
        ready=None,
        says="It has a pid namespace of its own: py-spy enters it by nsenter, which is not tried.",
    )


def _profile(stands: Stance, rights: Rights) -> Check:
    if stands.cannot_be_paused:
        return Check(
            capability="cpu profile",
            ready=False,
            says=f"It is {stands.cannot_be_paused}: there is no time to be shared out.",
            fix="Take stacks.",
        )
    says = f"{rights.pyspy_name} may sample it; that slows it while it lasts."
    return Check(capability="cpu profile", ready=True, says=says)


def _not(capability: Capability, error: PySpyError) -> Check:
    return Check(
        capability=capability,
        ready=False,
        says=error.reason,
        fix=error.fix,
        command=error.command,
    )
