"""What the control group of a process allows it of memory, and what it did to it.

Files: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of Linux.
"""

from pathlib import Path

from app.agent.evidence.sizes import size_text
from app.agent.processes.proc import PROC, cgroup
from app.agent.touching.small_files import named_numbers, read_small
from app.domain.counting import counted
from app.protocol.messages import Fact

CGROUPS = Path("/sys/fs/cgroup")
_UNLIMITED_BYTES = 1 << 60  # version 1 says "no limit" as a number near 2**63
_NEARLY_FULL = 0.95


def memory_facts(pid: int, who: str, *, proc: Path = PROC, groups: Path = CGROUPS) -> list[Fact]:
    """The limit, the use and the kills in the control group of *pid*; *who* names it."""
    folder = _folder(pid, proc, groups)
    if folder is None:
        says = f"The control group of {who} cannot be read."
        return [Fact(topic="cgroup", says=says, level="unknown", source=f"{proc}/{pid}/cgroup")]
    return [_limit(folder, groups, who), _kills(folder, who)]


def _folder(pid: int, proc: Path, groups: Path) -> Path | None:
    path = cgroup(pid, proc)
    if path is None or ".." in path.split("/"):  # outside what this agent can see
        return None
    for candidate in (groups / path.lstrip("/"), groups / "memory" / path.lstrip("/")):
        if (candidate / "memory.max").exists() or (candidate / "memory.limit_in_bytes").exists():
            return candidate
    return None


def _limit(folder: Path, groups: Path, who: str) -> Fact:
    """The tightest of its own limit and those of the groups around it: a pod, a slice."""
    around = [folder, *(parent for parent in folder.parents if groups in parent.parents)]
    limits = [(one, *_use(one)) for one in around]
    known = [(used / limit, used, limit, one) for one, used, limit in limits if used and limit]
    _, used, _ = limits[0]
    if known:
        share, used, limit, folder = max(known)
        says = f"{who} and its group use {size_text(used)} of {size_text(limit)} ({share:.0%})."
        level = "warn" if share > _NEARLY_FULL else "good"
    elif used is None:
        says, level = f"How much memory the control group of {who} uses is not known.", "unknown"
    else:
        says, level = f"{who} and its group use {size_text(used)}, without a limit.", "quiet"
    return Fact.model_validate(
        {"topic": "cgroup", "says": says, "level": level, "source": str(folder)}
    )


def _use(folder: Path) -> tuple[int | None, int | None]:
    """Bytes used and allowed."""
    used = _number(folder, "memory.current", "memory.usage_in_bytes")
    return used, _number(folder, "memory.max", "memory.limit_in_bytes")


def _kills(folder: Path, who: str) -> Fact:
    """``oom_kill`` of version 2, or of ``memory.oom_control`` since Linux 4.13 of version 1."""
    path = folder / "memory.events"
    if not path.exists():
        path = folder / "memory.oom_control"
    kills = named_numbers(read_small(path) or "").get("oom_kill")
    if kills is None:
        says, level = f"Whether memory kills hit the group of {who} is not known.", "unknown"
    elif kills:
        killed = counted(kills, "process", "processes")
        says, level = f"The kernel killed {killed} of the group of {who} for memory.", "bad"
    else:
        says, level = f"The kernel killed no process of the group of {who} for memory.", "good"
    return Fact.model_validate(
        {"topic": "cgroup", "says": says, "level": level, "source": str(path)}
    )


def _number(folder: Path, *names: str) -> int | None:
    """None where no such file is there, or it says "max"."""
    for name in names:
        text = (read_small(folder / name) or "").strip()
        if text.isascii() and text.isdigit():
            number = int(text)
            return None if number >= _UNLIMITED_BYTES else number
    return None
