"""The host on which this console runs, whose agent is inside it."""

from datetime import datetime

from sqlmodel import Session, col, select

from app.errors import Conflict
from app.store import audit
from app.store.audit import CONSOLE
from app.store.tables import Host
from app.store.vault import Vault

MOST_OF_A_NAME = 100


def own_host(
    session: Session, name: str, agent_id: str, key: bytes, *, vault: Vault, at: datetime
) -> Host | None:
    """The row of the agent inside this console, made or brought up to date.

    None where an admin removed it: it stays removed.
    """
    query = select(Host).where(Host.agent_id == agent_id, col(Host.embedded).is_(True))
    host = session.exec(query).first() or _same_name(session, name)
    if host is not None and host.removed_at is not None:
        return None
    if host is not None:
        host.agent_id, host.key_sealed = agent_id, vault.seal(key.hex())
        return host
    host = Host(
        name=_free_name(session, name),
        agent_url="",
        agent_id=agent_id,
        key_sealed=vault.seal(key.hex()),
        embedded=True,
        registered_by=CONSOLE.name,
        registered_at=at,
    )
    session.add(host)
    session.flush()
    audit.note(session, CONSOLE, "host.create", f"host:{host.id}", at=at, name=host.name)
    return host


def _same_name(session: Session, name: str) -> Host | None:
    """The same machine with a new state folder."""
    query = select(Host).where(Host.name == name, col(Host.embedded).is_(True))
    return session.exec(query).first()


def _free_name(session: Session, name: str) -> str:
    """*name*, told apart from another host that was registered under it."""
    name = name[:MOST_OF_A_NAME]
    for tried in (name, f"{name} (console)", *(f"{name} (console {n})" for n in range(2, 100))):
        if session.exec(select(Host.id).where(Host.name == tried)).first() is None:
            return tried
    raise Conflict(f"There are a hundred hosts named {name}.")
