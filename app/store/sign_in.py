"""Signing in and out, and whose session a cookie is."""

from datetime import datetime, timedelta

from sqlalchemy import Engine, bindparam
from sqlmodel import Session, col, delete, select

from app.errors import Rejected
from app.store import passwords, secret, throttle
from app.store.accounts import find_user
from app.store.audit import Actor, note
from app.store.database import reading, writing
from app.store.tables import User, WebSession

# Built once: every request asks it, and building it costs as much as asking.
_WHOSE_SESSION = (
    select(User.name, User.role)
    .join(WebSession, col(WebSession.user_id) == col(User.id))
    .where(col(WebSession.token_hash) == bindparam("token_hash"))
    .where(col(WebSession.expires_at) > bindparam("at"))
    .where(col(User.disabled_at).is_(None))
)


def sign_in(
    engine: Engine, name: str, password: str, *, address: str | None, hours: float, at: datetime
) -> str:
    """The secret of a new session; raises Throttled, or Rejected without saying what is wrong.

    A try is counted before the password is looked at, so that many at once gain nothing.
    """
    with writing(engine) as session:
        throttle.count_try(session, name, address, at=at)
    with reading(engine) as session:
        user = find_user(session, name)
    usable = user is not None and user.disabled_at is None
    if not passwords.fits(password, user.password_hash if user and usable else None):
        raise Rejected(
            "Name and password do not fit.",
            fix="An admin can set a new password on the console's machine.",
            command="incident-console user password NAME",
        )
    assert user is not None
    with writing(engine) as session:
        throttle.forgive(session, name, address)
        return start_session(session, user, address=address, hours=hours, at=at)


def start_session(
    session: Session, user: User, *, address: str | None, hours: float, at: datetime
) -> str:
    """The secret of a new session of *user*; sessions that have expired are swept out."""
    assert user.id is not None
    session.exec(delete(WebSession).where(col(WebSession.expires_at) <= at))
    token = secret.fresh()
    session.add(
        WebSession(
            token_hash=secret.digest(token),
            user_id=user.id,
            created_at=at,
            expires_at=at + timedelta(hours=hours),
        )
    )
    actor = Actor(user.name, "user", user.role, address)
    note(session, actor, "session.start", f"user:{user.name}", at=at)
    return token


def session_actor(
    session: Session, token: str, *, address: str | None, at: datetime
) -> Actor | None:
    """Who is signed in with *token*; None when expired, ended or disabled. One query."""
    given = {"token_hash": secret.digest(token), "at": at}
    found = session.exec(_WHOSE_SESSION, params=given).first()
    return Actor(found[0], "user", found[1], address) if found else None


def sign_out(session: Session, token: str, *, actor: Actor, at: datetime) -> None:
    """End one session. Repeatable."""
    session.exec(delete(WebSession).where(col(WebSession.token_hash) == secret.digest(token)))
    note(session, actor, "session.end", f"user:{actor.name}", at=at)
