"""Diagnostics of the same server, taken close to each other in time."""

from collections.abc import Sequence
from datetime import timedelta

from sqlmodel import Session, col, select

from app.store.tables import Diagnostic

# A hang keeps its counts and its stacks for as long as it lasts, and one press follows the other
# within minutes; later a person may have restarted the server or another fault may have come.
NEAR = timedelta(minutes=5)
_MOST = 10


def near_looks(session: Session, row: Diagnostic, kinds: Sequence[str]) -> list[Diagnostic]:
    """Diagnostics of *kinds* at what *row* looks at, asked for near to it; newest first."""
    query = (
        select(Diagnostic)
        .where(
            Diagnostic.incident_id == row.incident_id,
            col(Diagnostic.kind).in_(kinds),
            Diagnostic.id != row.id,
            col(Diagnostic.asked_at).between(row.asked_at - 2 * NEAR, row.asked_at + 2 * NEAR),
        )
        .order_by(col(Diagnostic.id).desc())
        .limit(_MOST)
    )
    return [one for one in session.exec(query) if _same_hosts(one, row)]


def _same_hosts(one: Diagnostic, other: Diagnostic) -> bool:
    if one.target_id is not None and other.target_id is not None:
        return one.target_id == other.target_id
    return bool({h["host_id"] for h in one.hosts} & {h["host_id"] for h in other.hosts})
