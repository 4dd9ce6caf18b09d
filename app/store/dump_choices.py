"""Requests that somebody chose in a dump: counted, listed, and written out."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, false, or_
from sqlmodel import Session, col, func, select

from app.domain.dumps.choosing import Choice
from app.store.dump_rows import STATES
from app.store.dump_tables import DumpRequest

LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a choice comes to. *states* counts those of which the file tells how they fared."""

    total: int
    states: dict[str, int]
    prompt_tokens: int | None  # of those that tell; None: none does
    prompts_told: int


def count_chosen(session: Session, dump_id: int, choice: Choice) -> Chosen:
    """How many requests of a dump a choice means, and what they come to."""
    column = col(DumpRequest.prompt_tokens)
    query = (
        select(DumpRequest.state, func.count(), func.count(column), func.sum(column))
        .where(_meant(dump_id, choice))
        .group_by(col(DumpRequest.state))
    )
    rows = session.exec(query).all()
    counts = {state: count for state, count, _, _ in rows if state in STATES}
    sums = [int(tokens) for _, _, _, tokens in rows if tokens is not None]
    return Chosen(
        total=sum(count for _, count, _, _ in rows),
        states={state: counts[state] for state in STATES if state in counts},
        prompt_tokens=sum(sums) if sums else None,
        prompts_told=sum(told for _, _, told, _ in rows),
    )


def chosen_rows(
    session: Session, dump_id: int, choice: Choice, *, limit: int
) -> Sequence[DumpRequest]:
    """The first requests that a choice means, in the order of the file."""
    query = select(DumpRequest).where(_meant(dump_id, choice))
    return session.exec(query.order_by(col(DumpRequest.position)).limit(limit)).all()


def chosen_indexes(session: Session, dump_id: int, choice: Choice, *, limit: int) -> Sequence[int]:
    """The indexes of the requests that a choice means, in the order of the file."""
    query = select(DumpRequest.position).where(_meant(dump_id, choice))
    return session.exec(query.order_by(col(DumpRequest.position)).limit(limit)).all()


def _meant(dump_id: int, choice: Choice) -> ColumnElement[bool]:
    position = col(DumpRequest.position)
    terms: list[ColumnElement[bool]] = [
        and_(position >= start, position < min(end, LARGEST)) for start, end in choice.spans
    ]
    if choice.rids:
        terms.append(col(DumpRequest.rid).in_(choice.rids))
    if choice.states:
        terms.append(col(DumpRequest.state).in_(choice.states))
    if choice.suspects:
        terms.append(col(DumpRequest.suspect_rank).is_not(None))
    meant: ColumnElement[bool] = or_(*terms) if terms else false()
    return and_(col(DumpRequest.dump_id) == dump_id, meant)
