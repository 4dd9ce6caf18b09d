"""What stands between a person and a replay: which target may be taken, and whether it is free.

A target that people may be served by is named by hand, never assumed to be clean; one replay at a
time is at work on a server.
"""

from collections.abc import Sequence

from sqlalchemy import or_
from sqlmodel import Session, col, select

from app.domain.replay.guards import Asked, Refusal, refusals
from app.errors import Conflict
from app.store.incidents import targets_of
from app.store.jobs import UNFINISHED
from app.store.tables import Job, Replay, Target


def asked_of(session: Session, incident_id: int, target: Target) -> Asked:
    """A target as the guards see it before its loads are known.

    One that the incident is about may serve people, whatever it was marked as before: it is
    never taken for clean without its name.
    """
    own = any(target.base_url == one.base_url for one in targets_of(session, incident_id))
    return Asked(name=target.name, clean=target.clean and not own, of_recording=own)


def to_confirm(session: Session, incident_id: int, target: Target) -> Refusal | None:
    """What a person has to answer by typing the target's name; None: it is clean."""
    asked = asked_of(session, incident_id, target)
    found = next((one for one in refusals(asked) if one.kind == "not-clean"), None)
    if found is None or not asked.of_recording:
        return found
    return Refusal(
        found.kind,
        f"Incident {incident_id} is about {target.name}: people may be served by it.",
        f"The requests may bring it down, as they did once, and whoever it serves goes down with "
        f"it. Only if it serves nobody any more, type {target.name}.",
        confirmable=True,
    )


def typed_for(replay: Replay, target: Target) -> str | None:
    """What a person typed to confirm this target where it is now; None: nothing."""
    names = [one["name"] for one in replay.confirmed if one["base_url"] == target.base_url]
    return names[-1] if names else None


def rival_of(
    session: Session, targets: Sequence[Target], *, but: int | None = None
) -> Replay | None:
    """A replay that is at work on one of *targets*, or waits to be."""
    urls = [one.base_url for one in targets]
    joined = or_(
        col(Target.id) == col(Replay.target_id), col(Target.id) == col(Replay.other_target_id)
    )
    query = (
        select(Replay)
        .join(Target, joined)
        .join(Job, col(Job.id) == col(Replay.job_id))
        .where(
            col(Target.base_url).in_(urls),
            col(Job.state).in_(UNFINISHED),
            col(Job.intrusive).is_(True),
        )
    )
    return next((one for one in session.exec(query) if one.id != but), None)


def lock_targets(session: Session, targets: Sequence[Target]) -> None:
    """Two that ask in one moment meet at these rows; SQLite has one writer anyway.

    All rows of a server: two targets may be one.
    """
    urls = {one.base_url for one in targets}
    query = select(Target).where(col(Target.base_url).in_(urls)).order_by(col(Target.id))
    session.exec(query.with_for_update()).all()


def refuse_rival(session: Session, targets: Sequence[Target], *, but: int | None = None) -> None:
    """Raises Conflict where another replay is at work on one of *targets*."""
    lock_targets(session, targets)
    if rival := rival_of(session, targets, but=but):
        raise Conflict(
            f"Replay {rival.id} is at work on the same target.",
            why="Two at once would each measure the other.",
            fix="Wait for it, or cancel it.",
        )
