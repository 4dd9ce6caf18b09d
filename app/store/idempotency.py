"""The answer to a POST that carried an Idempotency-Key, given again for the same key.

Guarantee: of requests with one key by one actor, at most one acts within a day. Answers may
hold a fresh token, so they are sealed with the key file like every stored credential.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, delete

from app.errors import Conflict
from app.store.tables import Idempotency
from app.store.vault import Vault

KEPT = timedelta(hours=24)
# A request that took longer was cut off with its process; whether it acted is not known.
AT_WORK_AT_MOST = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request as far as repeating it is concerned."""

    actor: str
    key: str
    request_hash: str  # of method, path, query and body


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A JSON answer, to be sent once more."""

    status: int
    body: str
    location: str | None = None


def begin(
    session: Session, vault: Vault, request: KeyedRequest, *, at: datetime
) -> KeptAnswer | None:
    """The answer given before, or None when the caller is to act now and then ``keep``.

    Raises Conflict when the key was used for another request or the first is still at work.
    """
    session.exec(delete(Idempotency).where(col(Idempotency.created_at) < at - KEPT))
    row = _row_before(session, request, at)
    if row is None:
        return None
    if row.request_hash != request.request_hash:
        raise Conflict("This Idempotency-Key was used for another request.", fix="Send a new key.")
    if row.status is None or row.answer is None:
        _take_over(row, at)
        return None
    return KeptAnswer(row.status, vault.unseal(row.answer["sealed"]), row.answer.get("location"))


def _row_before(session: Session, request: KeyedRequest, at: datetime) -> Idempotency | None:
    """The row of an earlier request; None when this one is the first and has now its own."""
    key = (request.actor, request.key)
    if row := session.get(Idempotency, key):
        return row
    ours = Idempotency(
        actor=request.actor, key=request.key, request_hash=request.request_hash, created_at=at
    )
    try:
        with session.begin_nested():
            session.add(ours)
    except IntegrityError:  # on PostgreSQL another writer may be first
        return session.get_one(Idempotency, key)
    return None


def _take_over(row: Idempotency, at: datetime) -> None:
    """Act in place of a request that was cut off; raises Conflict while it may be at work."""
    if at - row.created_at > AT_WORK_AT_MOST:
        row.created_at = at
        return
    raise Conflict(
        "The first request with this Idempotency-Key is still at work.",
        fix="Ask again in a few seconds.",
    )


def keep(session: Session, vault: Vault, request: KeyedRequest, answer: KeptAnswer) -> None:
    """Remember *answer* for a day."""
    row = session.get(Idempotency, (request.actor, request.key))
    if row is not None:
        row.status = answer.status
        row.answer = {"sealed": vault.seal(answer.body), "location": answer.location}


def forget(session: Session, request: KeyedRequest) -> None:
    """The request failed and changed nothing: the same key may be tried again."""
    row = session.get(Idempotency, (request.actor, request.key))
    if row is not None:
        session.delete(row)
