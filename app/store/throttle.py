"""How often one name and one address may try to sign in, counted in the database.

The first tries are free, then the wait doubles with each. A name waits at most a minute: a
longer one would let anybody lock the on-call engineer out. An address waits up to 15 minutes.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, delete

from app.errors import Throttled
from app.store.tables import LoginThrottle

FREE_TRIES = 5
MAX_NAME_WAIT_SECONDS = 60
MAX_ADDRESS_WAIT_SECONDS = 900
FORGOTTEN_AFTER = timedelta(days=1)
_LONGEST_SUBJECT = 200


def wait_seconds(failures: int, longest_seconds: int) -> int:
    """How long after the last failure the next try is taken."""
    if failures < FREE_TRIES:
        return 0
    return min(longest_seconds, 1 << min(failures - FREE_TRIES, 20))


def count_try(session: Session, name: str, address: str | None, *, at: datetime) -> None:
    """Count a try of *name* from *address*; raises Throttled when it comes too early."""
    session.exec(
        delete(LoginThrottle).where(col(LoginThrottle.last_failed_at) < at - FORGOTTEN_AFTER)
    )
    rows = [
        (_row(session, f"name:{name}", at), MAX_NAME_WAIT_SECONDS),
        (_row(session, f"address:{address}", at), MAX_ADDRESS_WAIT_SECONDS),
    ]
    wait = max(_left(row, longest, at) for row, longest in rows)
    if wait > 0:
        raise Throttled(
            f"Too many sign-ins failed. The next try is taken in {wait} s.",
            retry_after_seconds=wait,
        )
    for row, _ in rows:
        row.failures += 1
        row.last_failed_at = at


def forgive(session: Session, name: str, address: str | None) -> None:
    """The last try was right: the name starts anew, the address has one failure less."""
    session.exec(
        delete(LoginThrottle).where(col(LoginThrottle.subject) == _subject(f"name:{name}"))
    )
    if row := session.get(LoginThrottle, _subject(f"address:{address}")):
        row.failures = max(0, row.failures - 1)


def _row(session: Session, told: str, at: datetime) -> LoginThrottle:
    """The counter, locked until the end of the transaction; made when there is none."""
    subject = _subject(told)
    if row := session.get(LoginThrottle, subject, with_for_update=True):
        return row
    with suppress(IntegrityError), session.begin_nested():  # another try may be first
        session.add(LoginThrottle(subject=subject, failures=0, last_failed_at=at))
    return session.get_one(LoginThrottle, subject, with_for_update=True)


def _subject(told: str) -> str:
    return told[:_LONGEST_SUBJECT]


def _left(row: LoginThrottle, longest_seconds: int, at: datetime) -> int:
    due = row.last_failed_at + timedelta(seconds=wait_seconds(row.failures, longest_seconds))
    return max(0, -int((at - due).total_seconds() // 1)) if due > at else 0
