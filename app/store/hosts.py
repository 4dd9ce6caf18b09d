"""Hosts: machines whose agents this console may ask, and what was last heard of them."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError
from sqlalchemy import delete
from sqlmodel import Session, col, select

from app.clients.agent import AgentAddress
from app.errors import Conflict, NotFound, Rejected
from app.protocol.messages import Info, Message, Preflight, Processes
from app.store import audit
from app.store.audit import Actor
from app.store.tables import Host, TargetServer
from app.store.vault import Vault

LARGEST_ID = 2**63  # beyond it a database cannot look
NAME_MAX_LENGTH = 120
PROBLEM_MAX_LENGTH = 500


@dataclass(frozen=True, slots=True)
class NewHost:
    """A host as it is registered; the key in the clear, 64 hex digits, sealed before it is stored.

    The fingerprint is needed for https only: SHA-256 of the agent's certificate.
    """

    name: str
    agent_url: str
    key: str
    tls_fingerprint: str | None = None


def get_host(session: Session, host_id: int) -> Host:
    """The host of that number, a removed one too, as old diagnostics speak of it."""
    host = session.get(Host, host_id) if host_id < LARGEST_ID else None
    if host is None:
        raise NotFound(f"There is no host {host_id}.")
    return host


def list_hosts(session: Session) -> list[Host]:
    """Registered hosts by name, those removed left out."""
    query = select(Host).where(col(Host.removed_at).is_(None)).order_by(col(Host.name))
    return list(session.exec(query))


def register_host(
    session: Session, new: NewHost, *, vault: Vault, actor: Actor, at: datetime
) -> Host:
    """The new host; raises Rejected for an address that may not be asked, Conflict for a name."""
    address = AgentAddress.read(new.agent_url, new.key, new.tls_fingerprint)
    host = Host(
        name=_free_name(session, new.name),
        agent_url=address.url,
        key_sealed=vault.seal(address.key.hex()),
        tls_fingerprint=address.tls_fingerprint,
        registered_by=actor.name,
        registered_at=at,
    )
    session.add(host)
    session.flush()
    told = {"name": host.name, "agent_url": host.agent_url, "fingerprint": host.tls_fingerprint}
    audit.note(session, actor, "host.create", f"host:{host.id}", at=at, **told)
    return host


def remove_host(session: Session, host: Host, actor: Actor, at: datetime) -> None:
    """Take the host off the lists and forget its key and its links to targets."""
    if host.removed_at is not None:
        raise Conflict(f"{host.name} is removed already.", fix="Register it again.")
    audit.note(session, actor, "host.remove", f"host:{host.id}", at=at, name=host.name)
    session.execute(delete(TargetServer).where(col(TargetServer.host_id) == host.id))
    host.removed_at, host.key_sealed = at, ""
    host.name = f"{host.name[: NAME_MAX_LENGTH - 24]} (removed #{host.id})"  # frees the name


def note_heard(  # noqa: PLR0913  (each part of what a host may tell)
    session: Session,
    host_id: int,
    *,
    info: Info | None = None,
    processes: Processes | None = None,
    preflight: Preflight | None = None,
    problem: str | None = None,
    at: datetime,
) -> None:
    """Keep what a host said at *at*, or the *problem* why it said nothing.

    A problem leaves what was heard before as it is: it is the last that is known.
    """
    host = get_host(session, host_id)
    host.problem = problem[:PROBLEM_MAX_LENGTH] if problem else None
    if info is not None:
        host.agent_id, host.version, host.info = info.agent_id, info.version, _stored(info)
        host.clock_offset_seconds = round((info.at - at).total_seconds(), 3)
    if processes is not None:
        host.processes, host.processes_at = _stored(processes), at
    if preflight is not None:
        host.preflight, host.preflight_at = _stored(preflight), at
    if info or processes or preflight:
        host.heard_at = at


def info_of(host: Host) -> Info | None:
    """What the agent last said of itself; None: nothing, or what this version does not read."""
    return _kept(Info, host.info)


def processes_of(host: Host) -> Processes | None:
    """The servers that were last seen there, at ``host.processes_at``; None as above."""
    return _kept(Processes, host.processes)


def preflight_of(host: Host) -> Preflight | None:
    """What could be captured at ``host.preflight_at``; None as above."""
    return _kept(Preflight, host.preflight)


def _free_name(session: Session, name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= NAME_MAX_LENGTH or not name.isprintable():
        raise Rejected(f"A host needs a name of 1 to {NAME_MAX_LENGTH} printable characters.")
    if session.exec(select(Host.id).where(Host.name == name)).first() is not None:
        raise Conflict(f"There is a host {name} already.", fix="Choose another name.")
    return name


def _stored(message: Message) -> dict[str, object]:
    return message.model_dump(mode="json")


Kind = TypeVar("Kind", bound=Message)


def _kept(kind: type[Kind], stored: dict[str, object] | None) -> Kind | None:
    try:
        return kind.model_validate(stored) if stored is not None else None
    except ValidationError:
        return None
