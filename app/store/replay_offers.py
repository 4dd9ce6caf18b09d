"""Replays that could be asked for: where a dump is there, and a target that serves nobody."""

from sqlalchemy import case
from sqlmodel import Session, col, func, select

from app.domain.playbook import ReplayOffer, offers
from app.store.incidents import targets_of
from app.store.tables import Dump, DumpRequest, Replay, Target

MOST = 20


def replay_offers(session: Session, incident_id: int) -> tuple[ReplayOffer, ...]:
    """Offers for an incident, dumps with suspects first, of these the crash dumps.

    Nothing here asks for any of them.
    """
    replayed = select(Replay.dump_id).where(
        Replay.incident_id == incident_id, col(Replay.dump_id).is_not(None)
    )
    query = (
        select(Dump)
        .where(
            Dump.incident_id == incident_id,
            Dump.state == "ready",
            col(Dump.id).not_in(replayed),
        )
        .order_by(case((col(Dump.kind) == "crash dump", 0), else_=1), col(Dump.id).desc())
        .limit(MOST)
    )
    dumps = [(one.id or 0, one.name, _suspects(session, one)) for one in session.exec(query)]
    return offers(dumps, _clean(session, incident_id))


def _suspects(session: Session, dump: Dump) -> int:
    query = select(func.count()).where(
        DumpRequest.dump_id == dump.id, col(DumpRequest.suspect_rank).is_not(None)
    )
    return session.exec(query).one()


def _clean(session: Session, incident_id: int) -> list[tuple[int, str]]:
    """Targets marked as clean, by name, without those that the incident is about."""
    own = {one.base_url for one in targets_of(session, incident_id)}
    query = select(Target).where(col(Target.deleted_at).is_(None), col(Target.clean).is_(True))
    found = session.exec(query.order_by(col(Target.name)))
    return [(one.id or 0, one.name) for one in found if one.base_url not in own]
