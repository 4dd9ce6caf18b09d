"""What a host's page shows, gathered: its servers, what can be captured, what a restart loses."""

from collections.abc import Mapping, Sequence

from sqlmodel import Session

from app.domain.counting import counted
from app.protocol.messages import Preflight, Process, Processes, Server
from app.store.hosts import info_of, preflight_of, processes_of
from app.store.tables import Host, Target
from app.store.target_servers import target_of
from app.store.targets import get_target
from app.web.views import Shell
from app.web.views.hosts import HostPage, HostTold, ServerTold
from app.web.views.readiness import RestartTold, capabilities_told


def host_page(session: Session, shell: Shell, host: Host) -> HostPage:
    """The page of *host*, as it was last heard."""
    told = HostTold.of(host, shell.now)
    processes, preflight = processes_of(host), preflight_of(host)
    return HostPage(
        shell=shell,
        host=told,
        finding=_finding(told),
        info=info_of(host),
        gpus=processes.gpus if processes else None,
        servers=_servers(session, host, processes, preflight),
        cut=processes.cut if processes else None,
        servers_at=host.processes_at,
        capabilities=capabilities_told(preflight, names(processes)),
        ready_at=host.preflight_at,
        registered_by=host.registered_by,
        registered_at=host.registered_at,
        agent_id=host.agent_id,
        fingerprint=host.tls_fingerprint,
        now=shell.now,
    )


def called(process: Process) -> str:
    """``TP0``, or what the process is where it has no rank."""
    return process.rank.label if process.rank else process.role


def names(processes: Processes | None) -> Mapping[str, str]:
    """What each process is called; with its pid where that would be said of two."""
    listed = [one for server in processes.servers for one in server.processes] if processes else []
    plain = [called(process) for process in listed]
    return {
        process.id: name if plain.count(name) == 1 else f"{name} ({process.pid})"
        for process, name in zip(listed, plain, strict=True)
    }


def _servers(
    session: Session, host: Host, processes: Processes | None, preflight: Preflight | None
) -> list[ServerTold]:
    return [
        ServerTold(server, _targets(session, host, server), _restart(host, server, preflight))
        for server in (processes.servers if processes else ())
    ]


def _targets(session: Session, host: Host, server: Server) -> Sequence[Target]:
    assert host.id is not None
    target_id = target_of(session, host.id, server)
    return [get_target(session, target_id)] if target_id else []


def _restart(host: Host, server: Server, preflight: Preflight | None) -> RestartTold | None:
    cards = preflight.restarts if preflight else ()
    card = next((one for one in cards if one.server_id == server.id), None)
    return RestartTold(host.name, card) if card else None


def _finding(host: HostTold) -> str:
    if host.level == "quiet":
        return f"{host.name}: nothing is asked of it any more"
    if host.level != "good":
        return f"{host.name} {host.says}"
    count = len(host.servers or ()) + host.left_out
    servers = counted(count, "server runs", "servers run") if count else "no server runs"
    ready = (
        f", {host.tally.ready} of {counted(host.tally.told, 'capture')} ready" if host.tally else ""
    )
    return f"{host.name}: {servers}{ready}"
