"""Asking a host how it is, and writing down what it said or why it said nothing."""

import logging
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta

from sqlalchemy import CursorResult, or_, update
from sqlmodel import Session, col

from app.clients.agent import HEAR_SECONDS, AgentClient
from app.errors import ConsoleError
from app.protocol.looked_at import looked_at, title_of
from app.protocol.messages import Info, Preflight, Processes
from app.store import hosts
from app.store.aside import aside
from app.store.database import writing
from app.store.stores import Stores
from app.store.tables import Host

PREFLIGHT_EVERY = timedelta(minutes=2)  # or at once, when other processes run
EVERY = timedelta(seconds=30)

log = logging.getLogger(__name__)


def hear(stores: Stores, host: Host) -> None:
    """Ask *host* for itself and its processes, and note the answer; never raises for silence."""
    info: Info | None = None
    processes: Processes | None = None
    preflight: Preflight | None = None
    problem: str | None = None
    at = datetime.now(UTC)
    try:
        line = stores.agents.open(host)
        info = line.info()
        at = datetime.now(UTC)
        processes = line.processes(limit_seconds=HEAR_SECONDS)
        preflight = _preflight(line, host, processes, at)
    except ConsoleError as error:
        problem = error.detail
    with writing(stores.engine) as session:
        hosts.note_heard(
            session,
            _id(host),
            info=info,
            processes=processes,
            preflight=preflight,
            problem=problem,
            at=at,
        )


def is_due(host: Host, *, at: datetime) -> bool:
    """Whether it is time to ask *host* again."""
    return host.asked_at is None or host.asked_at <= at - EVERY


def claim(session: Session, host: Host, *, at: datetime) -> bool:
    """Whether it is for this worker to ask *host* now; of two that try, one gets True."""
    result = session.execute(
        update(Host)
        .where(
            col(Host.id) == host.id,
            col(Host.removed_at).is_(None),
            or_(col(Host.asked_at).is_(None), col(Host.asked_at) <= at - EVERY),
        )
        .values(asked_at=at)
    )
    assert isinstance(result, CursorResult)
    return result.rowcount == 1


def _begin(stores: Stores, host: Host) -> "Future[None]":
    return aside(lambda: hear(stores, host), name=f"hear {host.id}")


def _preflight(line: AgentClient, host: Host, told: Processes, at: datetime) -> Preflight | None:
    """What can be captured, now and then: to find out takes the agent longer."""
    kept = hosts.preflight_of(host)
    if kept is not None and host.preflight_at is not None and _is_about(kept, told):
        due = at - host.preflight_at > PREFLIGHT_EVERY
        return line.preflight() if due else None
    return line.preflight()


def _is_about(kept: Preflight, told: Processes) -> bool:
    """Whether *kept* looked at what runs there now: a restarted server has other processes."""
    running = {(one.id, title_of(one)) for server in told.servers for one in looked_at(server)}
    return running == {(one.process_id, one.title) for one in kept.processes}


def _id(host: Host) -> int:
    assert host.id is not None
    return host.id
