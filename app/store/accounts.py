"""People who may sign in. Each change is in the caller's transaction and in the audit log.

Argon2 is slow on purpose, so functions here take hashes: a writer holds the database's only
write lock and must not compute meanwhile.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, delete, func, select

from app.errors import Conflict, NotFound, Rejected
from app.store.audit import Actor, note
from app.store.tables import User, WebSession

ROLES = ("reader", "operator", "admin")
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")


def checked_role(role: str) -> str:
    """*role* itself; raises Rejected when there is no such role."""
    if role not in ROLES:
        raise Rejected(f"There is no role {role!r}.", fix=f"Roles are {', '.join(ROLES)}.")
    return role


def any_user(session: Session) -> bool:
    """Whether somebody can sign in at all, or could before being disabled."""
    return session.exec(select(col(User.id)).limit(1)).first() is not None


def list_users(session: Session, *, limit: int | None = None, after: str = "") -> Sequence[User]:
    """Users by name, disabled ones included; those that follow *after*."""
    query = select(User).where(User.name > after).order_by(col(User.name)).limit(limit)
    return session.exec(query).all()


def find_user(session: Session, name: str) -> User | None:
    """The user *name*, disabled or not; None when there is none."""
    return session.exec(select(User).where(User.name == name)).first()


def get_user(session: Session, name: str) -> User:
    """The user *name*, disabled or not; raises NotFound."""
    user = find_user(session, name)
    if user is None:
        raise NotFound(f"There is no user {name!r}.")
    return user


def create_user(
    session: Session, name: str, *, role: str, password_hash: str, actor: Actor, at: datetime
) -> User:
    """Add a user; raises Rejected for a bad name or role, Conflict when the name is taken."""
    if not _NAME.fullmatch(name):
        raise Rejected(
            "A user name is 1 to 64 small letters, digits and . _ @ -.",
            fix="Choose a name such as mira or mira@example.org.",
        )
    if find_user(session, name):
        raise Conflict(f"There is a user {name} already.")
    user = User(name=name, password_hash=password_hash, role=checked_role(role), created_at=at)
    session.add(user)
    session.flush()
    note(session, actor, "user.create", f"user:{name}", at=at, role=role)
    return user


def change_password(
    session: Session, name: str, password_hash: str, *, actor: Actor, at: datetime
) -> None:
    """Give a user another password; every session of the user ends."""
    user = get_user(session, name)
    user.password_hash = password_hash
    _end_sessions(session, user)
    note(session, actor, "user.password", f"user:{name}", at=at)


def disable_user(session: Session, name: str, *, actor: Actor, at: datetime) -> None:
    """Shut a user out at once; raises Conflict for the last admin. Repeatable."""
    user = get_user(session, name)
    if user.disabled_at is not None:
        return
    if user.role == "admin" and _admins(session) == 1:
        raise Conflict(
            f"{name} is the last admin and is not disabled.",
            why="Nobody could register targets or users any more.",
            fix="Make another admin first.",
        )
    user.disabled_at = at
    _end_sessions(session, user)
    note(session, actor, "user.disable", f"user:{name}", at=at)


def _admins(session: Session) -> int:
    query = select(func.count()).select_from(User)
    return session.exec(query.where(User.role == "admin", col(User.disabled_at).is_(None))).one()


def _end_sessions(session: Session, user: User) -> None:
    session.exec(delete(WebSession).where(col(WebSession.user_id) == user.id))
