"""What the pictures of a replay are drawn from: a few columns of many rows, in one pass."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlmodel import Session, col, select

from app.domain.replay.latency import noise_floor
from app.domain.replay.spread import Row
from app.store.replay_tables import ReplayOutcome

_TABLE: Any = ReplayOutcome.__table__  # type: ignore[attr-defined]
_COLUMNS = [_TABLE.c[name] for name in Row._fields]
_READ_AT_ONCE = 5000


def figures_of(session: Session, replay_id: int, trial: int) -> Iterator[Row]:
    """The outcomes of a trial by index, as far as they are drawn."""
    query = (
        select(*_COLUMNS)
        .where(ReplayOutcome.replay_id == replay_id, ReplayOutcome.trial == trial)
        .order_by(col(ReplayOutcome.position))
    )
    found = session.connection().execute(query.execution_options(yield_per=_READ_AT_ONCE))
    return map(Row._make, found)


def noise_between(session: Session, replay_id: int, one: int, other: int) -> float | None:
    """How far single requests of two trials of one target are apart: A/A; None: too few."""
    return noise_floor(_took(session, replay_id, one), _took(session, replay_id, other))


def first_failed(session: Session, replay_id: int, error: str) -> ReplayOutcome | None:
    """The first request, by trial and index, that failed in that way."""
    query = select(ReplayOutcome).where(
        ReplayOutcome.replay_id == replay_id, ReplayOutcome.error == error
    )
    ordered = query.order_by(col(ReplayOutcome.trial), col(ReplayOutcome.position))
    return session.exec(ordered.limit(1)).first()


def _took(session: Session, replay_id: int, trial: int) -> Mapping[int, float]:
    query = select(ReplayOutcome.position, ReplayOutcome.e2e_seconds).where(
        ReplayOutcome.replay_id == replay_id,
        ReplayOutcome.trial == trial,
        ReplayOutcome.state == "completed",
        col(ReplayOutcome.e2e_seconds).is_not(None),
    )
    return {index: seconds for index, seconds in session.exec(query) if seconds is not None}
