"""What a host tells right now, or what it told last, with the reason why it is old."""

from collections.abc import Callable
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
    last = hosts.processes_of(host), host.processes_at
    return _heard(stores, host, lambda: _line(stores, host, actor).processes(), last)


def preflight(stores: Stores, host_id: int, actor: Actor) -> Heard[Preflight]:
    """What can be captured there; raises NotFound where it never told it."""
    host = _host(stores, host_id)
    last = hosts.preflight_of(host), host.preflight_at
    return _heard(stores, host, lambda: _line(stores, host, actor).preflight(), last)


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


def _heard(
    stores: Stores, host: Host, ask: Callable[[], Told], last: tuple[Told | None, datetime | None]
) -> Heard[Told]:
    """What the host answers, kept with it; where it does not, what it told *last*, and when."""
    try:
        told = ask()
    except ConsoleError as error:
        kept, at = last
        if kept is None or at is None:
            raise NotFound(
                f"{host.name} has told nothing of it so far.", why=error.detail, fix=error.fix
            ) from error
        return Heard(kept, at, error.detail)
    at = datetime.now(UTC)
    with writing(stores.engine) as session:
        hosts.note_heard(
            session,
            host.id or 0,
            processes=told if isinstance(told, Processes) else None,
            preflight=told if isinstance(told, Preflight) else None,
            at=at,
        )
    return Heard(told, at)
