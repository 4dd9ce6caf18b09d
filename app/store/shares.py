"""Share links: a frozen T0 copy of a report under a secret of which only the hash is kept."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlmodel import Session, col, select

from app.domain.playbook import ReportShared, ShareRevoked
from app.domain.report_parts import rfc3339
from app.domain.sharing import T0, Names, shared_copy
from app.errors import Conflict, NotFound, Rejected
from app.store import audit, passwords, secret, timeline
from app.store.audit import Actor
from app.store.incidents import targets_of
from app.store.reports import report_of
from app.store.tables import ApiToken, BundleRow, Incident, Share, TimelineEvent, User
from app.store.vault import Vault

WEEK_SECONDS = 7 * 24 * 3600
SHORTEST_SECONDS, LONGEST_SECONDS = 5 * 60, 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class ShareTerms:
    """How long a link opens, at which tier, and with which password, if any."""

    expires_in_seconds: int = WEEK_SECONDS
    tier: str = T0
    password: str | None = None


def copy_of(session: Session, incident: Incident, vault: Vault, *, at: datetime) -> dict[str, Any]:
    """What a share made now would show: the report and its timeline at T0."""
    assert incident.id is not None
    moments = timeline.timeline(session, incident.id)
    return shared_copy(
        report_of(session, incident, at=at),
        [(one.occurred_at, one.event) for one in moments if not one.system],
        _names(session, incident),
        fingerprint=vault.fingerprint,
        at=at,
    )


def seal_of(copy: dict[str, Any]) -> str:
    """Tells two copies apart that do not show the same; when each was frozen does not count."""
    shown = {name: value for name, value in copy.items() if name != "frozen_at"}
    return hashlib.sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()


def create(  # noqa: PLR0913
    session: Session,
    incident: Incident,
    terms: ShareTerms,
    *,
    vault: Vault,
    actor: Actor,
    at: datetime,
    previewed: str | None = None,
) -> tuple[Share, str]:
    """A new share and its secret, which is told this once.

    Raises Conflict when *previewed*, the seal of the copy that a person looked at, is not that
    of the copy to be shared; Rejected for terms that are not offered.
    """
    _check(terms)
    password_hash = passwords.hashed(terms.password) if terms.password else None
    copy = copy_of(session, incident, vault, at=at)
    if previewed is not None and previewed != seal_of(copy):
        raise Conflict(
            "The report changed since this preview. No link was made.",
            fix="Look at the new preview, then make the link.",
        )
    token = secret.fresh()
    assert incident.id is not None
    share = Share(
        incident_id=incident.id,
        token_hash=secret.digest(token),
        tier=terms.tier,
        password_hash=password_hash,
        snapshot=copy,
        created_at=at,
        created_by=actor.name,
        expires_at=at + timedelta(seconds=terms.expires_in_seconds),
    )
    session.add(share)
    session.flush()
    _tell(session, share, "share.create", actor=actor, at=at)
    return share, token


def shares_of(session: Session, incident_id: int) -> Sequence[Share]:
    """The shares of an incident, newest first, revoked and expired ones included."""
    query = select(Share).where(Share.incident_id == incident_id)
    return session.exec(query.order_by(col(Share.id).desc())).all()


def get_share(session: Session, share_id: int) -> Share:
    """The share of that number; raises NotFound."""
    share = session.get(Share, share_id)
    if share is None:
        raise NotFound(f"There is no share {share_id}.")
    return share


def revoke(session: Session, share: Share, *, actor: Actor, at: datetime) -> None:
    """Close the link for good; once closed it stays so."""
    if share.revoked_at is None:
        share.revoked_at = at
        _tell(session, share, "share.revoke", actor=actor, at=at)


def opened_by(session: Session, token: str, *, at: datetime) -> Share | None:
    """The share under *token*; None, after the same work, for a wrong, expired or revoked one."""
    query = select(Share).where(Share.token_hash == secret.digest(token))
    share = session.exec(query).first()
    alive = share is not None and share.revoked_at is None and share.expires_at > at
    return share if alive else None


def count_opening(session: Session, share_id: int, *, at: datetime) -> None:
    """Note that somebody read the shared copy."""
    share = get_share(session, share_id)
    share.opened_count += 1
    share.last_opened_at = at


def _check(terms: ShareTerms) -> None:
    if terms.tier != T0:
        raise Rejected(
            f"Reports are shared at tier T0 only, not at {terms.tier[:8]}.",
            why="T1 and T2 would carry text that people and targets wrote.",
            fix="Leave the tier out, or send T0.",
        )
    if not SHORTEST_SECONDS <= terms.expires_in_seconds <= LONGEST_SECONDS:
        raise Rejected(
            "A link lives between 5 minutes and 30 days.",
            fix=f"Send expires_in_seconds from {SHORTEST_SECONDS} to {LONGEST_SECONDS}.",
        )


def _names(session: Session, incident: Incident) -> Names:
    """Everybody who could be named, and every address that was asked."""
    targets = targets_of(session, incident.id or 0)
    people = {*session.exec(select(User.name)), *session.exec(select(ApiToken.name))}
    actors = select(TimelineEvent.actor).where(TimelineEvent.incident_id == incident.id)
    people |= {*session.exec(actors.distinct()), incident.opened_by, incident.assignee or ""}
    asked = select(BundleRow.base_url).where(BundleRow.incident_id == incident.id)
    return Names(
        targets=tuple(target.name for target in targets),
        people=tuple(sorted(people)),
        base_urls=(*(target.base_url for target in targets), *session.exec(asked)),
    )


def _tell(session: Session, share: Share, action: str, *, actor: Actor, at: datetime) -> None:
    assert share.id is not None
    event = (
        ShareRevoked(share.id)
        if share.revoked_at
        else ReportShared(share.id, rfc3339(share.expires_at) or "", share.tier)
    )
    timeline.record(session, event, incident_id=share.incident_id, actor=actor, at=at)
    subject = f"incident:{share.incident_id}"
    audit.note(session, actor, action, subject, at=at, share_id=share.id, tier=share.tier)
