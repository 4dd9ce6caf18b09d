"""Whether a process is frozen by its cgroup: then nothing in it moves, whatever its state says.

Version 1 shows frozen processes as D, version 2 as S (measured on Linux 6.18).
"""

from pathlib import Path

from app.agent.processes.proc import PROC, read_bytes

CGROUPS = Path("/sys/fs/cgroup")
MAX_BYTES = 4096


def is_frozen(pid: int, *, root: Path = PROC, cgroups: Path = CGROUPS) -> bool:
    """True where the cgroup of *pid*, or one above it, says so; False where nothing is told."""
    return any(
        _says_frozen(controllers, path.lstrip("/"), cgroups)
        for _, controllers, path in (
            line.split(":", 2)
            for line in _read(root / str(pid) / "cgroup").splitlines()
            if line.count(":") > 1
        )
    )


def _says_frozen(controllers: str, path: str, cgroups: Path) -> bool:
    if controllers == "freezer":
        return _read(cgroups / "freezer" / path / "freezer.state").startswith("FR")
    mounts = (cgroups, cgroups / "unified") if controllers == "" else ()
    return any("frozen 1" in _read(mount / path / "cgroup.events") for mount in mounts)


def _read(path: Path) -> str:
    return (read_bytes(str(path), MAX_BYTES) or b"").decode(errors="replace")
