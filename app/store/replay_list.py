"""All replays, newest first: a page of them costs two queries, however many there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from app.store.tables import Incident, Replay, Target

_LARGE: tuple[Any, ...] = (Replay.plans, Replay.found)  # no line of the list needs them


@dataclass(frozen=True, slots=True)
class ListedReplay:
    """A replay without its plans, with the title of its incident and the names of its sides."""

    replay: Replay
    incident_title: str
    targets: Sequence[str]


def newest_replays(
    session: Session, *, limit: int, before: int | None = None
) -> Sequence[ListedReplay]:
    """Up to *limit* replays, newest first, of those older than the replay *before*."""
    query = (
        select(Replay, Incident.title)
        .join(Incident, col(Incident.id) == col(Replay.incident_id))
        .options(*(defer(one, raiseload=True) for one in _LARGE))
        .order_by(col(Replay.id).desc())
        .limit(limit)
    )
    if before is not None:
        query = query.where(col(Replay.id) < before)
    found = session.exec(query).all()
    names = _names(session, [replay for replay, _ in found])
    return [
        ListedReplay(replay, title, [names[one] for one in _sides(replay)])
        for replay, title in found
    ]


def _sides(replay: Replay) -> list[int]:
    return [one for one in (replay.target_id, replay.other_target_id) if one is not None]


def _names(session: Session, replays: Sequence[Replay]) -> Mapping[int, str]:
    """Of deleted targets too: their rows stay."""
    wanted = {one for replay in replays for one in _sides(replay)}
    query = select(Target.id, Target.name).where(col(Target.id).in_(wanted))
    return {number: name for number, name in session.exec(query) if number is not None}
