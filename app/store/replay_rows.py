"""Rows of outcomes: written by the thousand, read back for the verdict, filtered, paged.

A row is written once more under the same trial and index without harm: a request that was not
sent before a replay was cut off gets its real outcome later.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, delete, false, true, tuple_
from sqlalchemy.dialects.postgresql import insert as insert_postgres
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlmodel import Session, col, func, select

from app.domain.replay.outcomes import Outcome, row
from app.domain.replay.phrases import at_t0
from app.domain.replay.planned import OF_ANSWER, Recorded
from app.store.replay_tables import ReplayOutcome

State = Literal["completed", "failed", "not sent"]
Place = tuple[int, int]  # trial and index of the last row of a page
STATES: tuple[State, ...] = get_args(State)
NOT_SENT: State = "not sent"
LONGEST_TEXT = 400
_LARGEST, _LARGEST_SMALL = 2**63, 2**31
_SMALL = frozenset(("status", "frames", "compared_tokens", "first_divergent_token"))
_READ_AT_ONCE = 5000
_TABLE = ReplayOutcome.__table__  # type: ignore[attr-defined]
_KEY = ("replay_id", "trial", "position")
_OUTCOME = tuple(one.name for one in fields(Outcome) if one.name != "index")
_RECORDED = tuple(one.name for one in fields(Recorded) if one.name not in OF_ANSWER)
_UNSENT = frozenset(("not-sent", "cancelled"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which outcomes to list; None does not restrict. *error* is a class of ``outcomes``."""

    trial: int | None = None
    state: State | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some outcomes by trial and index. *after* is the place to go on from; None: the last."""

    rows: Sequence[ReplayOutcome]
    after: Place | None


EVERY = Wanted()


def state_of(outcome: Outcome) -> State:
    """What an outcome counts as. What was broken off by us never had its chance."""
    if outcome.sent_at is None and outcome.error in _UNSENT:
        return NOT_SENT
    if outcome.error == "cancelled":
        return NOT_SENT
    return "completed" if outcome.completed else "failed"


def put_outcomes(
    session: Session, replay_id: int, trial: int, pairs: Iterable[tuple[Outcome, Recorded]]
) -> None:
    """Write outcomes in the caller's transaction, over those of the same requests."""
    values = [_values(replay_id, trial, outcome, recorded) for outcome, recorded in pairs]
    if not values:
        return
    sqlite = session.get_bind().dialect.name == "sqlite"
    made: Any = (insert_sqlite if sqlite else insert_postgres)(_TABLE)
    newer = {name: made.excluded[name] for name in values[0] if name not in _KEY}
    session.connection().execute(
        made.on_conflict_do_update(index_elements=list(_KEY), set_=newer), values
    )


def drop_unsent(session: Session, replay_id: int, trial: int) -> None:
    """Delete what an attempt that was cut off did not send: it is sent now."""
    session.execute(
        delete(ReplayOutcome).where(
            col(ReplayOutcome.replay_id) == replay_id,
            col(ReplayOutcome.trial) == trial,
            col(ReplayOutcome.state) == NOT_SENT,
        )
    )


def done_indexes(session: Session, replay_id: int, trial: int) -> set[int]:
    """The requests of a trial that have had their chance."""
    query = select(ReplayOutcome.position).where(
        ReplayOutcome.replay_id == replay_id,
        ReplayOutcome.trial == trial,
        ReplayOutcome.state != NOT_SENT,
    )
    return set(session.exec(query))


def outcomes_of(
    session: Session,
    replay_id: int,
    wanted: Wanted = EVERY,
    *,
    after: Place | None = None,
    limit: int = 100,
) -> Page:
    """A page of outcomes by trial and index."""
    query = select(ReplayOutcome).where(*_conditions(replay_id, wanted))
    if after is not None:
        query = query.where(_later(wanted, after))
    ordered = query.order_by(col(ReplayOutcome.trial), col(ReplayOutcome.position))
    rows = session.exec(ordered.limit(limit + 1)).all()
    if len(rows) <= limit:
        return Page(rows, None)
    last = rows[limit - 1]
    return Page(rows[:limit], (last.trial, last.position))


def counts_of(session: Session, replay_id: int, trial: int) -> dict[str | None, dict[str, int]]:
    """How many outcomes of a trial there are, by class of error and by state; None: no error."""
    query = (
        select(ReplayOutcome.error, ReplayOutcome.state, func.count())
        .where(ReplayOutcome.replay_id == replay_id, ReplayOutcome.trial == trial)
        .group_by(col(ReplayOutcome.error), col(ReplayOutcome.state))
    )
    found: dict[str | None, dict[str, int]] = {}
    for error, state, count in session.exec(query):
        found.setdefault(error, {})[state] = count
    return found


def read_outcomes(
    session: Session, replay_id: int, trial: int
) -> Iterator[tuple[Outcome, Recorded]]:
    """Every outcome of a trial by index, as the domain knows it."""
    query = (
        select(*_TABLE.columns)
        .where(ReplayOutcome.replay_id == replay_id, ReplayOutcome.trial == trial)
        .order_by(col(ReplayOutcome.position))
    )
    found = session.connection().execute(query.execution_options(yield_per=_READ_AT_ONCE))
    for told in found.mappings():
        yield (
            Outcome(index=told["position"], **{name: told[name] for name in _OUTCOME}),
            Recorded(**{name: told[f"recorded_{name}"] for name in _RECORDED}),
        )


def row_of(outcome: ReplayOutcome, *, raw: bool = False) -> dict[str, Any]:
    """*outcome* as a line of ``replay --out``, with its trial and state.

    *raw*: with the words of the target, which may quote a prompt (T2); else as all may read it.
    """
    told = Outcome(index=outcome.position, **{name: getattr(outcome, name) for name in _OUTCOME})
    recorded = Recorded(**{name: getattr(outcome, f"recorded_{name}") for name in _RECORDED})
    line = row(*((told, recorded) if raw else at_t0(told, recorded)))
    if not raw:
        del line["output_hash"]  # it has no key: a short answer is found by trying a few
    return {"trial": outcome.trial, "state": outcome.state, **line}


def _later(wanted: Wanted, after: Place) -> ColumnElement[bool]:
    """Behind a place. Of one trial by the index alone, or SQLite would walk all before it."""
    trial, position = col(ReplayOutcome.trial), col(ReplayOutcome.position)
    if wanted.trial is None:
        return tuple_(trial, position) > tuple_(*after)
    if wanted.trial == after[0]:
        return position > after[1]
    return true() if after[0] < wanted.trial else false()


def _conditions(replay_id: int, wanted: Wanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [col(ReplayOutcome.replay_id) == replay_id]
    if wanted.trial is not None:
        found.append(col(ReplayOutcome.trial) == wanted.trial)
    if wanted.state is not None:
        found.append(col(ReplayOutcome.state) == wanted.state)
    if wanted.error is not None:
        found.append(col(ReplayOutcome.error) == wanted.error)
    return found


def _values(replay_id: int, trial: int, outcome: Outcome, recorded: Recorded) -> dict[str, Any]:
    """What a target told is held to its type and size here."""
    told = {name: _fitting(name, getattr(outcome, name)) for name in _OUTCOME}
    before = {f"recorded_{name}": _fitting(name, getattr(recorded, name)) for name in _RECORDED}
    key = {"replay_id": replay_id, "trial": trial, "position": outcome.index}
    return {**key, "state": state_of(outcome), **told, **before}


def _fitting(name: str, value: object) -> object:
    """What does not fit its column becomes None: not known."""
    match value:
        case bool() | None:
            return value
        case str():
            return value[:LONGEST_TEXT].replace("\0", "\ufffd")
        case int() | float():
            most = _LARGEST_SMALL if name in _SMALL else _LARGEST
            return value if -most < value < most else None
    return None
