"""The linked servers of an incident's targets: what a form names, and whom that asks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlmodel import Session

from app.errors import NotFound
from app.protocol.messages import Process, Server
from app.store.tables import Host, Target
from app.store.target_servers import LinkedServer, servers_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server of a target, on one host or several, and the key that a form names it by."""

    key: str
    target: Target
    servers: Sequence[LinkedServer]
    several: bool  # of more servers of this target on one host

    @property
    def found(self) -> list[tuple[Host, Server]]:
        """The parts that run now, as far as the agents told."""
        return [(one.host, one.server) for one in self.servers if one.server]

    @property
    def hosts(self) -> list[str]:
        return [one.host.name for one in self.servers]

    def whom(
        self, process_id: str, *, whole: bool
    ) -> tuple[list[int], list[str] | Literal["schedulers"]]:
        """The hosts and processes to ask: one process, all ranks, or the *whole* hosts.

        No host: those that the target is linked with. Raises NotFound for a process elsewhere.
        """
        if process_id:
            hosts = [host for host, process in self.ranks() if process.id == process_id]
            if not hosts:
                raise NotFound(
                    f"{process_id} is no rank of {self.target.name} any more.",
                    fix="Load the incident again: the server may have been restarted.",
                )
            return [_id(hosts[0])], [process_id]
        if not self.several:
            return [], "schedulers"
        hosts = [host for host, _ in self.found]
        named = [process.id for _, process in self.ranks()]
        return [_id(host) for host in hosts], "schedulers" if whole else named

    def ranks(self) -> list[tuple[Host, Process]]:
        """The processes that evidence is taken of: its ranks, all of them where none is known."""
        return [(host, process) for host, server in self.found for process in ranks_of(server)]


def _id(host: Host) -> int:
    assert host.id is not None
    return host.id


def ranks_of(server: Server) -> list[Process]:
    """The schedulers or workers of *server*; every process of it while none is known."""
    ranks = [process for process in server.processes if process.rank is not None]
    return ranks or list(server.processes)


def candidates(session: Session, targets: Sequence[Target]) -> list[Candidate]:
    """The servers that are linked to *targets*; one on several hosts is one."""
    return [one for target in targets for one in _of_target(session, target)]


def candidate(session: Session, targets: Sequence[Target], key: str) -> Candidate:
    """The one that *key* names; raises NotFound."""
    for one in candidates(session, targets):
        if one.key == key:
            return one
    raise NotFound("This server is not linked to a target of the incident.")


def _of_target(session: Session, target: Target) -> Iterator[Candidate]:
    linked = servers_of(session, target)
    hosts = [one.host.id for one in linked]
    if not linked:
        return
    if len(set(hosts)) == len(hosts):
        yield Candidate(str(target.id), target, linked, several=False)
        return
    for one in linked:
        key = f"{target.id}.{one.link.host_id}.{one.link.port}"
        yield Candidate(key, target, [one], several=True)
