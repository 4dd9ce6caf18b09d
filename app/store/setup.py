"""The first admin: by a one-time link, or by a password file. Only while there is no user."""

from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine, update
from sqlmodel import Session, col, delete, select

from app.errors import Misconfigured, NotFound
from app.store import passwords, secret
from app.store.accounts import any_user, create_user
from app.store.audit import CLI, Actor
from app.store.database import reading, writing
from app.store.tables import SetupLink, User

LINK_LASTS = timedelta(hours=24)
FIRST_ADMIN = "admin"


def new_link(session: Session, *, at: datetime) -> str | None:
    """The secret of a new link, after which older ones are void; None when a user exists."""
    if any_user(session):
        return None
    session.exec(delete(SetupLink))
    token = secret.fresh()
    session.add(
        SetupLink(token_hash=secret.digest(token), created_at=at, expires_at=at + LINK_LASTS)
    )
    return token


def check_link(session: Session, token: str, *, at: datetime) -> SetupLink:
    """The link *token*; raises NotFound alike when unknown, used, expired or not needed."""
    query = select(SetupLink).where(SetupLink.token_hash == secret.digest(token))
    link = session.exec(query.where(col(SetupLink.used_at).is_(None))).first()
    if link is None or link.expires_at <= at or any_user(session):
        raise _useless()
    return link


def _useless() -> NotFound:
    return NotFound(
        "This set-up link does not work.",
        why="A set-up link works once, for 24 hours, while there is no user.",
        fix="Restart the console: while there is no user it prints a new link.",
    )


def use_link(
    session: Session, token: str, *, name: str, password_hash: str, at: datetime, actor: Actor
) -> User:
    """Make the first admin and spend the link; raises NotFound as ``check_link`` does."""
    link = check_link(session, token, at=at)
    unused = col(SetupLink.used_at).is_(None)
    spend = update(SetupLink).where(col(SetupLink.token_hash) == link.token_hash, unused)
    if session.exec(spend.values(used_at=at)).rowcount != 1:
        raise _useless()  # another browser was faster
    return create_user(session, name, role="admin", password_hash=password_hash, actor=actor, at=at)


def first_admin_from(engine: Engine, password_file: Path, *, at: datetime) -> bool:
    """Whether the user "admin" was made now with the password in *password_file*."""
    with reading(engine) as session:
        if any_user(session):
            return False
    try:
        password = password_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(
            f"FIRST_ADMIN_PASSWORD_FILE {password_file} cannot be read: {error}."
        ) from error
    password_hash = passwords.hashed(password)
    with writing(engine) as session:
        if any_user(session):  # another process was faster
            return False
        create_user(
            session, FIRST_ADMIN, role="admin", password_hash=password_hash, actor=CLI, at=at
        )
    return True
