"""Which processes a diagnostic is about: those named, or the schedulers of one server."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlmodel import Session

from app.errors import Conflict, NotFound, Rejected
from app.protocol.messages import Process, Server
from app.store.hosts import get_host, list_hosts, processes_of
from app.store.tables import Host, Target
from app.store.target_servers import LinkedServer, servers_of, target_of

Schedulers = Literal["schedulers"]
RANKS = ("scheduler", "worker")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Processes on one host; none: the host itself."""

    host: Host
    process_ids: tuple[str, ...]
    servers: tuple[Server, ...] = ()  # that they belong to, as far as that is known


def of_hosts(session: Session, target: Target | None, host_ids: Sequence[int]) -> list[Chosen]:
    """Whole hosts: those named, otherwise those of the target's servers, and only these servers."""
    if host_ids:
        return [Chosen(_present(session, one), ()) for one in dict.fromkeys(host_ids)]
    linked = _linked(session, target)
    chosen = []
    for host in {one.host.id: one.host for one in linked}.values():
        servers = tuple(one.server for one in linked if one.host is host and one.server)
        chosen.append(Chosen(host, tuple(server.id for server in servers), servers))
    return chosen


def of_servers(
    session: Session, target: Target | None, host_ids: Sequence[int], process_ids: Sequence[str]
) -> list[Chosen]:
    """Whole servers by their roots: of the processes named, else of the target, else of hosts.

    A host where none is known now has no process. Raises Conflict where that is true of all.
    """
    if process_ids:
        named = of_processes(session, target, host_ids, process_ids)
        return [_roots(one.host, one.servers) if one.servers else one for one in named]
    if target is None:
        hosts = [_present(session, one) for one in dict.fromkeys(host_ids)]
        return [_roots(host, _servers(host)) for host in hosts]
    linked = [one for one in _linked(session, target) if not host_ids or one.host.id in host_ids]
    if not any(one.server for one in linked):
        _refuse_lost(target, linked)
    return [
        _roots(host, [one.server for one in linked if one.host.id == host.id and one.server])
        for host in {one.host.id: one.host for one in linked}.values()
    ]


def of_processes(
    session: Session, target: Target | None, host_ids: Sequence[int], process_ids: Sequence[str]
) -> list[Chosen]:
    """The hosts of the processes named; raises NotFound or Conflict where that cannot be told."""
    hosts = _candidates(session, target, host_ids)
    places = {one: _place(one, hosts) for one in dict.fromkeys(process_ids)}
    chosen = []
    for host in hosts:
        mine = tuple(one for one, place in places.items() if place is host)
        if mine:
            servers = tuple(
                one for one in _servers(host) if {p.id for p in one.processes} & {*mine}
            )
            chosen.append(Chosen(host, mine, servers))
    if target is not None:
        _refuse_others(session, target, chosen)
    return chosen


def of_schedulers(session: Session, target: Target | None, host_ids: Sequence[int]) -> list[Chosen]:
    """The ranks of one server on all its hosts; raises Conflict, naming servers, if ambiguous."""
    if target is not None:
        linked = [
            one for one in _linked(session, target) if not host_ids or one.host.id in host_ids
        ]
        _refuse_lost(target, linked)
        pairs = [(one.host, one.server) for one in linked if one.server is not None]
    else:
        hosts = [_present(session, one) for one in dict.fromkeys(host_ids)]
        pairs = [(host, server) for host in hosts for server in _servers(host)]
        _refuse_several(session, pairs)
    if len({host.id for host, _ in pairs}) < len(pairs):
        raise _ambiguous(pairs)
    return [Chosen(host, _ranks(host, server), (server,)) for host, server in pairs]


def only_target(session: Session, chosen: Iterable[Chosen]) -> int | None:
    """The target that all these processes serve, as linked; None: none, or several."""
    found = {
        target_of(session, one.host.id or 0, server) for one in chosen for server in one.servers
    }
    return found.pop() if len(found) == 1 else None


def _linked(session: Session, target: Target | None) -> list[LinkedServer]:
    linked = servers_of(session, target) if target else []
    if not linked:
        name = target.name if target else "The incident"
        raise Conflict(
            f"{name} is not linked with a server on any host.",
            why=f"Servers seen: {_told(session)}.",
            fix="Confirm on the page of the target which servers it is, or name the processes.",
        )
    return linked


def _refuse_lost(target: Target, linked: Sequence[LinkedServer]) -> None:
    if lost := [one.says for one in linked if one.server is None]:
        raise Conflict(
            f"Not every server of {target.name} is known now: {' '.join(lost)}",
            fix="Look at the hosts, and confirm the link again, or name the processes.",
        )


def _refuse_others(session: Session, target: Target, chosen: Iterable[Chosen]) -> None:
    """What serves another target is not written down as this one's."""
    for one in chosen:
        for server in one.servers:
            if target_of(session, one.host.id or 0, server) not in (None, target.id):
                raise Conflict(
                    f"{server.name} on {one.host.name} is linked with another target than "
                    f"{target.name}.",
                    fix="Name that target, or none.",
                )


def _refuse_several(session: Session, pairs: Sequence[tuple[Host, Server]]) -> None:
    """Without a target only what is linked as one, or is alone, is one server."""
    if not pairs:
        raise Conflict(
            "No server was seen on these hosts.", fix="Look at the hosts: was one heard lately?"
        )
    targets = {target_of(session, host.id or 0, server) for host, server in pairs}
    if len(pairs) > 1 and (len(targets) > 1 or None in targets):
        raise _ambiguous(pairs)


def _ambiguous(pairs: Sequence[tuple[Host, Server]]) -> Conflict:
    named = "; ".join(f"{server.name} ({server.id}) on {host.name}" for host, server in pairs)
    return Conflict(
        f"There are {len(pairs)} servers: {named}.",
        why="Schedulers are those of one server.",
        fix="Send the process_ids of one of them, or the target that is linked with it.",
    )


def _ranks(host: Host, server: Server) -> tuple[str, ...]:
    ranks = tuple(one.id for one in server.processes if one.role in RANKS)
    # Where the server lives inside its only scheduler, the root is that rank.
    found = ranks or tuple(one.id for one in server.processes if one.rank is not None)
    if not found:
        raise Conflict(
            f"{server.name} on {host.name} has no scheduler that can be told.",
            fix="It may be starting. Name the processes to look at it anyway.",
        )
    return found


def _roots(host: Host, servers: Sequence[Server]) -> Chosen:
    return Chosen(host, tuple(server.id for server in servers), tuple(servers))


def _candidates(session: Session, target: Target | None, host_ids: Sequence[int]) -> list[Host]:
    if host_ids:
        return [_present(session, one) for one in dict.fromkeys(host_ids)]
    if target is not None and (linked := servers_of(session, target)):
        return list({one.host.id: one.host for one in linked}.values())
    return list_hosts(session)


def _place(process_id: str, hosts: Sequence[Host]) -> Host:
    places = [host for host in hosts if any(p.id == process_id for p in _processes(host))]
    if not places and len(hosts) == 1:
        return hosts[0]  # what was kept may be old: its agent knows
    if not places:
        raise NotFound(f"No process {process_id} was seen.", fix="Name its host with host_ids.")
    if len(places) > 1:
        names = ", ".join(host.name for host in places)
        raise Conflict(f"{process_id} is a process on each of {names}.", fix="Send host_ids.")
    return places[0]


def _present(session: Session, host_id: int) -> Host:
    host = get_host(session, host_id)
    if host.removed_at is not None:
        raise Rejected(f"{host.name} is removed.", fix="Register it again.")
    return host


def _servers(host: Host) -> list[Server]:
    told = processes_of(host)
    return told.servers if told else []


def _processes(host: Host) -> list[Process]:
    return [process for server in _servers(host) for process in server.processes]


def _told(session: Session) -> str:
    seen = [f"{one.name} on {host.name}" for host in list_hosts(session) for one in _servers(host)]
    return ", ".join(seen) or "none"
