"""The servers of this host: who belongs to whom, and what each process is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.agent.processes import proc
from app.agent.processes.details import Details
from app.agent.processes.ports import Listeners, Listening
from app.domain.crowd import Candidate, in_turns
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
_LOOKED_AT = 4 * MAX_SERVERS  # of more servers than fit, those whose libraries are read


@dataclass(frozen=True, slots=True)
class Found:
    """The servers of a host by pid, and how many more there are than are told."""

    servers: list[Server]
    left_out: int = 0


class Servers:
    """Finds them in the procfs at *root*."""

    def __init__(self, root: Path, fingerprint: Fingerprint) -> None:
        self._root = root
        self._details = Details(root, fingerprint)

    def look(self, gpus: Mapping[int, list[GpuUse]] | None) -> Found:
        """All servers as they are now; *gpus* by pid, None when the driver does not say.

        Of more than fit, the users of the host take turns.
        """
        stats = self._stats()
        seen = {pid: self._seen(stat) for pid, stat in stats.items()}
        look = _Look(self._root, self._details, stats, seen, gpus)
        trees = look.in_turns(find_trees(seen, self._is_init))
        servers = [look.server(tree) for tree in trees[:MAX_SERVERS]]
        servers.sort(key=lambda server: proc.pid_of(server.id))
        self._details.forget_all_but({p.id for server in servers for p in server.processes})
        return Found(servers, len(trees) - len(servers))

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

    def in_turns(self, trees: Sequence[Tree]) -> list[Tree]:
        """Those to be told first before the others."""
        ordered = in_turns(map(self._candidate, trees))
        if len(ordered) > MAX_SERVERS:
            closer = map(self._with_libraries, ordered[:_LOOKED_AT])
            ordered = [*in_turns(closer), *ordered[_LOOKED_AT:]]
        by_root = {tree.root: tree for tree in trees}
        return [by_root[one.root] for one in ordered]

    def _candidate(self, tree: Tree) -> Candidate:
        stat = self._stats[tree.root]
        uses_gpu = any((self._gpus or {}).get(pid) for pid in tree.members)
        uid, container = self._details.owner(tree.root)
        return Candidate(tree.root, uid, container, 2 * uses_gpu, stat.start_ticks)

    def _with_libraries(self, one: Candidate) -> Candidate:
        runs_model = self._details.runs_model(one.root)
        return replace(one, evidence=one.evidence + runs_model)

    def server(self, tree: Tree) -> Server:
        roles = self._roles(tree)
        listening = self._listening(tree, roles)
        ports, known = listening.ports, listening.whole
        if ports:  # it opens them last: what has no title by then is no rank on its way
            roles = {pid: "other" if role == "starting" else role for pid, role in roles.items()}
        # Each costs some fifteen system calls: of very many, the ranks come first.
        kept = sorted(roles, key=lambda pid: (pid != tree.root, self._order(pid, roles[pid])))
        processes = [self._process(tree, pid, roles[pid]) for pid in kept[:MAX_PROCESSES]]
        root = processes[0]
        declared = declared_port(self._seen[tree.root].arguments, tree.engine)
        in_order = sorted(ports, key=lambda port: (port != declared, port))
        return Server(
            id=root.id,
            engine=tree.engine,
            name=_name(tree, in_order, declared, known=known),
            ports=in_order[:MAX_PORTS],
            ports_known=known and len(ports) <= MAX_PORTS,
            processes=processes,
            processes_left_out=len(kept) - len(processes),
            started_at=root.started_at,
            starting="starting" in roles.values()
            or (known and not ports and not _RANKS & {*roles.values()}),
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

    def _listening(self, tree: Tree, roles: Mapping[int, Role]) -> Listening:
        """Where the frontend listens."""
        seen = [self._listeners.of(pid) for pid in tree.members if roles[pid] in _LISTENING]
        declared = declared_port(self._seen[tree.root].arguments, tree.engine)
        ports = frozenset[int]().union(*(one.ports for one in seen))
        if declared not in ports:
            ports |= self._inside_schedulers(tree, roles, declared)
        return Listening(ports, whole=all(one.whole for one in seen))

    def _inside_schedulers(self, tree: Tree, roles: Mapping[int, Role], declared: int) -> set[int]:
        """SGLang's Rust server lives in the first scheduler of each DP rank: port + DP rank."""
        found = set()
        for pid in tree.members:
            title = self._seen[pid].title
            if roles[pid] == "scheduler" and title is not None and title.rank is not None:
                found |= {declared + (title.rank.dp or 0)} & self._listeners.of(pid).ports
        return found

    def _order(self, pid: int, role: Role) -> Sequence[int]:
        title = self._seen[pid].title
        rank = title.rank if title is not None else None
        numbers = (rank.dp, rank.pp, rank.tp, rank.ep) if rank else ()
        return (_ORDER.index(role), *(-1 if number is None else number for number in numbers), pid)


def _name(tree: Tree, ports: Sequence[int], declared: int, *, known: bool) -> str:
    if tree.gone:
        return f"{tree.engine} without its server, pid {tree.root}"
    if ports:
        return f"{tree.engine} on port {ports[0]}"
    return (
        f"{tree.engine}, port {declared} not open" if known else f"{tree.engine}, pid {tree.root}"
    )
