"""The audit log: every state change, who made it, from where. Only ever added to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from app.store.tables import AuditEvent


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person, a program with a token, the console itself, or the command line."""

    name: str  # "mira", "bastion", "console", "cli"
    kind: str  # user, token, console, cli
    role: str  # reader, operator, admin
    address: str | None = None  # where the request came from

    @property
    def told(self) -> str:
        """As it stands in the audit log: ``user:mira``."""
        return f"{self.kind}:{self.name}"


CONSOLE = Actor("console", "console", "admin")
CLI = Actor("cli", "cli", "admin")


def note(
    session: Session,
    actor: Actor,
    action: str,
    subject: str,
    *,
    at: datetime,
    **detail: Any,  # noqa: ANN401
) -> None:
    """Add one line to the audit log, in the caller's transaction."""
    session.add(
        AuditEvent(
            at=at,
            actor=actor.told,
            action=action,
            subject=subject,
            detail=detail,
            address=actor.address,
        )
    )


def newest(session: Session, *, limit: int, before: int | None = None) -> Sequence[AuditEvent]:
    """Audit lines, newest first; older than the line *before* when given."""
    query = select(AuditEvent).order_by(col(AuditEvent.id).desc()).limit(limit)
    if before is not None:
        query = query.where(col(AuditEvent.id) < before)
    return session.exec(query).all()
