"""Replays in the lists of an incident and of a dump, and the one that could be asked for next."""

from collections.abc import Sequence
from urllib.parse import urlencode

from sqlmodel import Session

from app.domain.playbook import ReplayOffer
from app.store.replay_offers import replay_offers
from app.store.replays import replays_of, replays_of_dump, sides
from app.store.tables import Replay
from app.web.formats import visible
from app.web.replay_words import finding
from app.web.views.replay_form import IncidentReplays, ReplayLine, ReplayList, ReplayOfferTold

MOST_LINES = 8
_LEVELS = {
    "reproduced": "bad", "reproduced sometimes": "bad", "not reproduced": "quiet",
}  # fmt: skip
_STATES = {"running": "good", "interrupted": "warn", "refused": "warn", "failed": "bad"}


def incident_replays(session: Session, incident_id: int) -> IncidentReplays:
    """The newest replays of an incident, and the one to ask for next."""
    newest = _newest(session, replays_of(session, incident_id))
    offer = next(iter(replay_offers(session, incident_id)), None)
    return IncidentReplays(newest.lines, newest.total, _offer(offer) if offer else None)


def dump_replays(session: Session, dump_id: int) -> ReplayList:
    """The newest replays of a dump's requests."""
    return _newest(session, replays_of_dump(session, dump_id))


def _offer(offer: ReplayOffer) -> ReplayOfferTold:
    asked = {"dump": offer.dump_id, "select": offer.select, "target": offer.target_id}
    given = {name: value for name, value in asked.items() if value}
    return ReplayOfferTold(visible(offer.says), f"?{urlencode(given)}")


def _newest(session: Session, replays: Sequence[Replay]) -> ReplayList:
    newest = replays[:MOST_LINES]
    lines = [line_of(one, [side.name for side in sides(session, one)]) for one in newest]
    return ReplayList(lines, len(replays))


def line_of(replay: Replay, names: Sequence[str]) -> ReplayLine:
    """A replay in a list; *names* are those of its targets."""
    done = replay.state == "done"
    level = _LEVELS.get(str(replay.verdict), "unknown") if done else "quiet"
    return ReplayLine(
        id=replay.id or 0,
        headline=finding(replay, names),
        level=level if done else _STATES.get(replay.state, "quiet"),
        state=replay.verdict or replay.state if done else replay.state,
        targets=visible(" and ".join(names)),
        asked_at=replay.asked_at,
        asked_by=visible(replay.asked_by),
    )
