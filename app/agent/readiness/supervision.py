"""Who would end a server, and how long it waits between the request and the kill."""

import re
from dataclasses import dataclass
from pathlib import Path

from app.agent.processes.proc import PROC, cgroup, environment
from app.agent.touching.tools import run_tool

SYSTEMCTL_SECONDS = 3.0
DOCKER_SECONDS = 10  # of ``docker stop`` unless it is told otherwise
POD_SECONDS = 30  # of Kubernetes unless the pod says otherwise

_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,200}\.service")
_PART = re.compile(r"(\d+)(us|ms|s|min|h|d|w)")
_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
    "w": 604_800.0,
}


@dataclass(frozen=True, slots=True)
class Supervision:
    """*seconds*: from the request to end to SIGKILL; None: not known. "inf" is for ever."""

    by: str
    seconds: float | None = None
    look: str | None = None  # a command that tells a person
    unit: str | None = None  # of systemd


def supervision(pid: int, root: Path = PROC) -> Supervision:
    """From the control group of *pid* and, for a systemd unit, what systemctl says of it."""
    group = cgroup(pid, root) or ""
    told = environment(pid, root) or {}
    if "kubepods" in group or "KUBERNETES_SERVICE_HOST" in told:
        look = (
            "kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.terminationGracePeriodSeconds}'"
        )
        return Supervision("Kubernetes", look=look)
    if "docker" in group or "libpod" in group:
        return Supervision(
            "a container runtime", look="docker inspect -f '{{.Config.StopTimeout}}'"
        )
    unit = group.rsplit("/", 1)[-1]
    if _UNIT.fullmatch(unit) and "/user@" not in group:
        return Supervision(unit, _stop_timeout(unit), f"systemctl cat {unit}", unit)
    return Supervision("nobody that can be seen")


def timespan_seconds(text: str) -> float | None:
    """What systemd prints as a time span, "1min 30s" or "infinity"; None for anything else."""
    text = text.strip()
    if text == "infinity":
        return float("inf")
    if not text or _PART.sub("", text).strip():
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def _stop_timeout(unit: str) -> float | None:
    argv = ("systemctl", "show", "--property=TimeoutStopUSec", "--value", "--", unit)
    run = run_tool(argv, deadline_seconds=SYSTEMCTL_SECONDS, max_bytes=4096)
    return timespan_seconds(run.out.decode(errors="replace")) if run.status == 0 else None
