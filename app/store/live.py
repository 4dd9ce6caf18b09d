"""What a host tells right now, or what it told last, with the reason why it is old."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from app.clients.agent import AgentClient
from app.errors import ConsoleError, NotFound, Rejected
from app.protocol.messages import Preflight, Processes
from app.store import hosts
from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Host

Told = TypeVar("Told", Processes, Preflight)


@dataclass(frozen=True, slots=True)
class Heard(Generic[Told]):
    """An answer of a host. *problem* None: it was given just now."""

    told: Told
    at: datetime
    problem: str | None = None


def processes(stores: Stores, host_id: int, actor: Actor) -> Heard[Processes]:
    """The servers of a host; raises NotFound where it never told them."""
    host = _host(stores, host_id)
    try:
        told = _line(stores, host, actor).processes()
    except ConsoleError as error:
        kept = hosts.processes_of(host)
        return _last(host, kept, host.processes_at, error)
    at = datetime.now(UTC)
    with writing(stores.engine) as session:
        hosts.note_heard(session, host_id, processes=told, at=at)
    return Heard(told, at)


def preflight(stores: Stores, host_id: int, actor: Actor) -> Heard[Preflight]:
    """What can be captured there; raises NotFound where it never told it."""
    host = _host(stores, host_id)
    try:
        told = _line(stores, host, actor).preflight()
    except ConsoleError as error:
        kept = hosts.preflight_of(host)
        return _last(host, kept, host.preflight_at, error)
    at = datetime.now(UTC)
    with writing(stores.engine) as session:
        hosts.note_heard(session, host_id, preflight=told, at=at)
    return Heard(told, at)


def ask(stores: Stores, host_id: int, actor: Actor) -> None:
    """Have the host tell both anew; why it does not is kept with it, beside what it told last.

    Raises NotFound for an unknown host, and Rejected for one that was removed.
    """
    host = _host(stores, host_id)
    if host.removed_at is not None:
        raise Rejected(f"{host.name} is removed.", fix="Register it again.")
    try:
        problem = (
            processes(stores, host_id, actor).problem or preflight(stores, host_id, actor).problem
        )
    except NotFound as error:
        problem = error.why
    if problem is not None:
        with writing(stores.engine) as session:
            hosts.note_heard(session, host_id, problem=problem, at=datetime.now(UTC))


def _host(stores: Stores, host_id: int) -> Host:
    with reading(stores.engine) as session:
        return hosts.get_host(session, host_id)


def _line(stores: Stores, host: Host, actor: Actor) -> AgentClient:
    return stores.agents.open(host, actor=actor.name)


def _last(host: Host, kept: Told | None, at: datetime | None, error: ConsoleError) -> Heard[Told]:
    if kept is None or at is None:
        raise NotFound(
            f"{host.name} has told nothing of it so far.", why=error.detail, fix=error.fix
        )
    return Heard(kept, at, error.detail)
