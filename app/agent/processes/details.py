"""One process of a server, in full: read only for those that belong to one."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from app.agent.processes import proc
from app.domain.doubts import LIBRARIES, doubts
from app.domain.redaction import Fingerprint, redact_json
from app.domain.server_tree import Seen, Tree
from app.domain.titles import RankNumbers, is_python, printable
from app.protocol.messages import GpuUse, Process, Rank, Role

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_COMMAND_CHARACTERS = 8000
_FIRST_MAPS_BYTES = 256 * 1024  # read of each of very many processes
_CONTAINER = re.compile(r"(?<![0-9a-f])([0-9a-f]{12})[0-9a-f]{52}(?![0-9a-f])")


class Details:
    """Reads them. What never changes in a process is remembered while it lives."""

    def __init__(self, root: Path, fingerprint: Fingerprint) -> None:
        self._root, self._fingerprint = root, fingerprint
        self._boot_seconds = proc.boot_seconds(root)
        self._own = {kind: proc.own_namespace(kind, root) for kind in ("pid", "mnt")}
        self._loaded: dict[str, set[str]] = {}  # libraries once seen, by process id

    def read(
        self, stat: proc.Stat, seen: Seen, role: Role, tree: Tree, gpus: list[GpuUse] | None
    ) -> Process:
        """*seen* with all that the kernel tells of it at this moment."""
        status = proc.read_status(stat.pid, self._root)
        return Process(
            id=stat.id,
            pid=stat.pid,
            inner_pid=_inner_pid(status, stat.pid),
            parent_pid=stat.parent_pid or None,
            title=self._title(seen, stat),
            role=role,
            rank=_rank(seen, role),
            state=stat.state,
            uid=_uid(status),
            started_at=self.started_at(stat),
            threads=stat.threads,
            wchan=proc.wchan(stat.pid, self._root),
            traced_by=_number(status.get("TracerPid")) or None,
            rss_bytes=stat.rss_bytes,
            own_pid_namespace=self._differs(stat.pid, "pid"),
            own_mount_namespace=self._differs(stat.pid, "mnt"),
            container=container(proc.cgroup(stat.pid, self._root)),
            gpus=gpus,
            doubts=self._doubts(stat, seen, tree, _uid(status)),
        )

    def started_at(self, stat: proc.Stat) -> datetime | None:
        """None when the kernel does not say when it booted."""
        if self._boot_seconds is None:
            return None
        seconds = self._boot_seconds + stat.start_ticks / _TICKS_PER_SECOND
        return datetime.fromtimestamp(seconds, UTC)

    def owner(self, pid: int) -> tuple[int | None, str | None]:
        """Its user and its container."""
        uid = _uid(proc.read_status(pid, self._root))
        return uid, container(proc.cgroup(pid, self._root))

    def runs_model(self, pid: int) -> bool:
        """Whether CUDA or torch is seen in it: only the first of its mapped files are read."""
        found = proc.mapped(pid, *LIBRARIES, root=self._root, limit=_FIRST_MAPS_BYTES)
        return bool(found) and is_python(proc.executable(pid, self._root) or "")

    def command_line(self, seen: Seen) -> str | None:
        """Without secrets; None where a title took its place."""
        if seen.title is not None or not seen.arguments:
            return None
        safe, _ = redact_json(list(seen.arguments), fingerprint=self._fingerprint)
        assert isinstance(safe, list)
        return printable(" ".join(map(str, safe)), _COMMAND_CHARACTERS)

    def forget_all_but(self, process_ids: set[str]) -> None:
        """Keep what is remembered of *process_ids* only."""
        self._loaded = {key: found for key, found in self._loaded.items() if key in process_ids}

    def _title(self, seen: Seen, stat: proc.Stat) -> str:
        if seen.title is not None and seen.arguments:
            return printable(" ".join(seen.arguments).strip())
        return printable(self.command_line(seen) or f"[{stat.comm}]")

    def _differs(self, pid: int, kind: str) -> bool | None:
        theirs, own = proc.namespace(pid, kind, self._root), self._own[kind]
        return theirs != own if theirs and own else None

    def _doubts(self, stat: proc.Stat, seen: Seen, tree: Tree, uid: int | None) -> list[str]:
        if seen.title is None and stat.pid != tree.root:
            return []  # it claims nothing
        ranked = seen.title is not None and seen.title.rank is not None
        return doubts(
            program=proc.executable(stat.pid, self._root),
            uid=uid,
            server_uid=_uid(proc.read_status(tree.root, self._root)),
            libraries=self._libraries(stat) if ranked else None,
            server_gone=tree.gone and stat.pid == tree.root,
        )

    def _libraries(self, stat: proc.Stat) -> set[str] | None:
        """Read until one is found: the list of a process with torch is long, and they stay."""
        key = stat.id
        if key not in self._loaded:
            found = proc.mapped(stat.pid, *LIBRARIES, root=self._root)
            if not found:
                return found
            self._loaded[key] = found
        return self._loaded[key]


def container(cgroup: str | None) -> str | None:
    """The short id that Docker, containerd, CRI-O and Podman put into the path of a cgroup."""
    ids = _CONTAINER.findall(cgroup or "")
    return ids[-1] if ids else None


def _rank(seen: Seen, role: Role) -> Rank | None:
    if role not in ("scheduler", "worker") or seen.title is None or seen.title.rank is None:
        return None
    numbers: RankNumbers = seen.title.rank
    return Rank(label=numbers.label, tp=numbers.tp, pp=numbers.pp, dp=numbers.dp, ep=numbers.ep)


def _uid(status: dict[str, str]) -> int | None:
    """The effective one: it decides what the process may do."""
    uids = status.get("Uid", "").split()
    return _number(uids[1]) if len(uids) > 1 else None


def _inner_pid(status: dict[str, str], pid: int) -> int | None:
    """The last of its pids, one for each namespace from ours inwards; None where it has one."""
    *_, inner = status.get("NSpid", "").split() or [""]
    number = _number(inner)
    return number if number != pid else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
