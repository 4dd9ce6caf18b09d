"""The servers of this host: who belongs to whom, and what each process is."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.agent.processes import proc
from app.agent.processes.details import Details
from app.agent.processes.ports import Listeners
from app.domain.redaction import Fingerprint
from app.domain.server_tree import Seen, Tree, find_trees, is_copy
from app.domain.titles import declared_port, is_spawned, read_comm, read_title
from app.protocol.messages import (
    MAX_PORTS,
    MAX_PROCESSES,
    MAX_SERVERS,
    GpuUse,
    Process,
    Role,
    Server,
)

_ORDER: tuple[Role, ...] = (
    "server",
    "router",
    "dp controller",
    "scheduler",
    "worker",
    "detokenizer",
    "tokenizer worker",
    "starting",
    "other",
)
_RANKS: frozenset[Role] = frozenset({"scheduler", "worker"})
_LISTENING = ("server", "router", "tokenizer worker")


class Servers:
    """Finds them in the procfs at *root*."""

    def __init__(self, root: Path, fingerprint: Fingerprint) -> None:
        self._root = root
        self._details = Details(root, fingerprint)

    def look(self, gpus: Mapping[int, list[GpuUse]] | None) -> list[Server]:
        """All servers as they are now; *gpus* by pid, None when the driver does not say."""
        stats = self._stats()
        seen = {pid: self._seen(stat) for pid, stat in stats.items()}
        trees = find_trees(seen, self._is_init)[:MAX_SERVERS]
        look = _Look(self._root, self._details, stats, seen, gpus)
        servers = [look.server(tree) for tree in trees]
        self._details.forget_all_but({p.id for server in servers for p in server.processes})
        return servers

    def _stats(self) -> dict[int, proc.Stat]:
        read = (proc.read_stat(pid, self._root) for pid in proc.pids(self._root))
        return {stat.pid: stat for stat in read if stat is not None and not stat.kernel_thread}

    def _seen(self, stat: proc.Stat) -> Seen:
        arguments = proc.command_line(stat.pid, self._root)
        # A zombie has lost its arguments; the kernel keeps the first letters of its name.
        title = read_title(arguments) if arguments else read_comm(stat.comm)
        return Seen(stat.pid, stat.parent_pid, arguments, title, stat.session)

    def _is_init(self, pid: int) -> bool:
        inner = proc.read_status(pid, self._root).get("NSpid", str(pid)).split()
        return inner[-1:] == ["1"]


class _Look:
    """What was seen in one pass over the processes."""

    def __init__(
        self,
        root: Path,
        details: Details,
        stats: Mapping[int, proc.Stat],
        seen: Mapping[int, Seen],
        gpus: Mapping[int, list[GpuUse]] | None,
    ) -> None:
        self._details, self._stats, self._seen, self._gpus = details, stats, seen, gpus
        self._listeners = Listeners(root)

    def server(self, tree: Tree) -> Server:
        roles = self._roles(tree)
        ports = self._ports(tree, roles)
        if ports:  # it opens them last: what has no title by then is no rank on its way
            roles = {pid: "other" if role == "starting" else role for pid, role in roles.items()}
        # Each costs some fifteen system calls: of very many, the ranks come first.
        kept = sorted(roles, key=lambda pid: (pid != tree.root, self._order(pid, roles[pid])))
        processes = [self._process(tree, pid, roles[pid]) for pid in kept[:MAX_PROCESSES]]
        root = processes[0]
        return Server(
            id=root.id,
            engine=tree.engine,
            name=self._name(tree, ports),
            ports=(ports or [])[:MAX_PORTS],
            processes=processes,
            started_at=root.started_at,
            starting="starting" in roles.values()
            or (ports == [] and not _RANKS & {*roles.values()}),
            container=root.container,
            command_line=self._details.command_line(self._seen[tree.root]),
        )

    def _process(self, tree: Tree, pid: int, role: Role) -> Process:
        gpus = None if self._gpus is None else self._gpus.get(pid, [])
        return self._details.read(self._stats[pid], self._seen[pid], role, tree, gpus)

    def _roles(self, tree: Tree) -> dict[int, Role]:
        workers = {
            self._seen[pid].parent_pid
            for pid in tree.members
            if (title := self._seen[pid].title) is not None and title.role == "worker"
        }
        return {pid: self._role(tree, pid, has_workers=pid in workers) for pid in tree.members}

    def _role(self, tree: Tree, pid: int, *, has_workers: bool) -> Role:
        process = self._seen[pid]
        if process.title is None:
            if pid == tree.root:
                return "server"
            return "starting" if is_spawned(process.arguments) else "other"
        if process.arguments and is_copy(self._seen, process):
            return "other"
        if process.title.role == "engine core":  # it runs the model itself where it has no workers
            return "other" if has_workers else "worker"
        return process.title.role

    def _ports(self, tree: Tree, roles: Mapping[int, Role]) -> list[int] | None:
        """Those of the frontend, the declared one first; None when nothing can be seen."""
        open_ports = [
            self._listeners.ports(pid) for pid in tree.members if roles[pid] in _LISTENING
        ]
        declared = declared_port(self._seen[tree.root].arguments, tree.engine)
        found: set[int] = set().union(*(ports for ports in open_ports if ports))
        if declared not in found:
            found |= self._inside_schedulers(tree, roles, declared)
        if not found and None in open_ports:
            return None
        return sorted(found, key=lambda port: (port != declared, port))

    def _inside_schedulers(self, tree: Tree, roles: Mapping[int, Role], declared: int) -> set[int]:
        """SGLang's Rust server lives in the first scheduler of each DP rank: port + DP rank."""
        found = set()
        for pid in tree.members:
            title = self._seen[pid].title
            if roles[pid] == "scheduler" and title is not None and title.rank is not None:
                found |= {declared + (title.rank.dp or 0)} & (self._listeners.ports(pid) or set())
        return found

    def _order(self, pid: int, role: Role) -> Sequence[int]:
        title = self._seen[pid].title
        rank = title.rank if title is not None else None
        numbers = (rank.dp, rank.pp, rank.tp, rank.ep) if rank else ()
        return (_ORDER.index(role), *(-1 if number is None else number for number in numbers), pid)

    def _name(self, tree: Tree, ports: list[int] | None) -> str:
        if tree.gone:
            return f"{tree.engine} without its server, pid {tree.root}"
        if ports:
            return f"{tree.engine} on port {ports[0]}"
        if ports is None:
            return f"{tree.engine}, pid {tree.root}"
        declared = declared_port(self._seen[tree.root].arguments, tree.engine)
        return f"{tree.engine}, port {declared} not open"
