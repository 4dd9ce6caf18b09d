"""Which servers a target is: proposed by address and port, confirmed by a person.

A link survives restarts of the server: the process that was confirmed counts first, then the
only server of the same engine on the same port of the same host.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from sqlmodel import Session, col, select

from app.errors import Conflict, NotFound
from app.protocol.messages import Server
from app.store import audit
from app.store.audit import Actor
from app.store.hosts import get_host, list_hosts, processes_of
from app.store.tables import Host, Target, TargetServer
from app.store.targets import refuse_deleted

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A server that a target may be; *why* it is proposed, in one sentence."""

    host: Host
    server: Server
    why: str


@dataclass(frozen=True, slots=True)
class LinkedServer:
    """A confirmed link and what it leads to now; *server* None: *says* tells the reason."""

    host: Host
    server: Server | None
    link: TargetServer
    says: str


def links_of(session: Session, target: Target) -> list[TargetServer]:
    """The confirmed links of a target, by host and port."""
    query = select(TargetServer).where(TargetServer.target_id == target.id)
    ordered = query.order_by(col(TargetServer.host_id), col(TargetServer.port))
    return list(session.exec(ordered))


def proposals(session: Session, target: Target) -> list[Proposal]:
    """Servers on the target's port that are not linked to it yet, the likeliest host first."""
    linked = {(one.host.id, one.server.id) for one in servers_of(session, target) if one.server}
    found = []
    for host in list_hosts(session):
        for server in _servers(host):
            why = _why(target, host, server)
            if why and (host.id, server.id) not in linked:
                found.append(Proposal(host, server, why))
    return sorted(found, key=lambda one: not _same_machine(target, one.host))


def confirm(
    session: Session, target: Target, host_id: int, server_id: str, actor: Actor, at: datetime
) -> TargetServer:
    """Link *target* with a server that was seen on a host.

    Raises Conflict where none was, and for a deleted target.
    """
    refuse_deleted(target)
    host = get_host(session, host_id)
    server = next((one for one in _servers(host) if one.id == server_id), None)
    if host.removed_at is not None or server is None:
        raise Conflict(
            f"No server {server_id} was seen on {host.name}.",
            why=f"Seen there: {_named(_servers(host))}.",
            fix="Choose one of the servers that run now.",
        )
    assert target.id is not None
    link = session.merge(
        TargetServer(
            target_id=target.id,
            host_id=host_id,
            port=_port(server),
            server_id=server.id,
            engine=server.engine,
            confirmed_by=actor.name,
            confirmed_at=at,
        )
    )
    told = {"host": host.name, "server": server.name, "server_id": server.id}
    audit.note(session, actor, "target.link", f"target:{target.id}", at=at, **told)
    return link


def unlink(
    session: Session, target: Target, host_id: int, port: int, actor: Actor, at: datetime
) -> None:
    """Take a link back; raises NotFound where there is none."""
    link = session.get(TargetServer, (target.id, host_id, port))
    if link is None:
        raise NotFound(f"{target.name} is not linked with port {port} of host {host_id}.")
    session.delete(link)
    told = {"host_id": host_id, "port": port, "server_id": link.server_id}
    audit.note(session, actor, "target.unlink", f"target:{target.id}", at=at, **told)


def link_exactly(
    session: Session,
    target: Target,
    wanted: Sequence[tuple[int, str]],
    actor: Actor,
    at: datetime,
) -> None:
    """Link *target* with these (host id, server id) and no other."""
    present = {(one.host_id, one.server_id): one for one in links_of(session, target)}
    for key, link in present.items():
        if key not in wanted:
            unlink(session, target, link.host_id, link.port, actor, at)
    session.flush()
    for key in wanted:
        if key not in present:
            confirm(session, target, *key, actor, at)


def servers_of(session: Session, target: Target) -> list[LinkedServer]:
    """What each link of *target* leads to now, as its host was last heard."""
    return [_resolved(get_host(session, one.host_id), one) for one in links_of(session, target)]


def target_of(session: Session, host_id: int, server: Server) -> int | None:
    """The target that a server on a host is linked to; None: none, or several."""
    query = select(TargetServer).where(TargetServer.host_id == host_id)
    found = {
        link.target_id
        for link in session.exec(query)
        if link.server_id == server.id
        or (link.port in server.ports and link.engine == server.engine)
    }
    return found.pop() if len(found) == 1 else None


def _resolved(host: Host, link: TargetServer) -> LinkedServer:
    told = processes_of(host)
    if told is None:
        return LinkedServer(host, None, link, f"{host.name} has not told its processes yet.")
    servers = told.servers
    same = [one for one in servers if one.id == link.server_id]
    if same:
        return LinkedServer(host, same[0], link, "The server that was confirmed.")
    alike = [one for one in servers if link.port in one.ports and one.engine == link.engine]
    if len(alike) == 1:
        return LinkedServer(host, alike[0], link, "Restarted since it was confirmed.")
    if alike:
        says = f"{len(alike)} servers listen on port {link.port} of {host.name}."
    elif told.cut or not all(one.ports_known for one in servers):
        says = f"Whether a server listens on port {link.port} of {host.name} is not known: "
        says += told.cut or "not all ports there could be read."
    else:
        says = f"No {link.engine} server listens on port {link.port} of {host.name} any more."
    return LinkedServer(host, None, link, says)


def _why(target: Target, host: Host, server: Server) -> str | None:
    parts = urlsplit(target.base_url)
    port = parts.port or USUAL_PORTS.get(parts.scheme, 0)
    if port not in server.ports:
        return None
    if _same_machine(target, host):
        return f"It listens on port {port} of {host.name}, where the target's address leads."
    if parts.hostname in LOOPBACK:
        return None  # of the console's own machine, which this host is not
    return f"It listens on port {port}; whether {parts.hostname} is {host.name} is not known here."


def _same_machine(target: Target, host: Host) -> bool:
    name = urlsplit(target.base_url).hostname
    agent = urlsplit(host.agent_url).hostname
    if name in LOOPBACK:
        return host.embedded or agent in LOOPBACK
    return name in {agent, host.name}


def _servers(host: Host) -> list[Server]:
    told = processes_of(host)
    return told.servers if told else []


def _port(server: Server) -> int:
    return min(server.ports, default=0)


def _named(servers: Sequence[Server]) -> str:
    return ", ".join(f"{one.name} ({one.id})" for one in servers) or "none"
