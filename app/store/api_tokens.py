"""Keys for programs: shown once, kept as a hash, revoked at any time."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Engine, update
from sqlmodel import Session, col, select

from app.errors import NotFound, Rejected
from app.store import secret
from app.store.accounts import checked_role
from app.store.audit import Actor, note
from app.store.database import reading, writing
from app.store.tables import ApiToken

# A token that is used all the time costs one write a minute, not one a request.
USE_NOTED_EVERY = timedelta(minutes=1)
_LONGEST_NAME = 64


def create_token(
    session: Session, name: str, *, role: str, actor: Actor, at: datetime
) -> tuple[ApiToken, str]:
    """The row of a new token and its secret, which cannot be read again."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise Rejected(f"A token has a name of 1 to {_LONGEST_NAME} characters.")
    token = secret.fresh()
    row = ApiToken(
        name=name.strip(),
        token_hash=secret.digest(token),
        role=checked_role(role),
        created_at=at,
        created_by=actor.name,
    )
    session.add(row)
    session.flush()
    note(session, actor, "token.create", f"token:{row.id}", at=at, name=row.name, role=role)
    return row, token


def list_tokens(
    session: Session, *, limit: int | None = None, before: int | None = None
) -> Sequence[ApiToken]:
    """Tokens that work, newest first; those made before *before*, an id."""
    query = select(ApiToken).where(col(ApiToken.revoked_at).is_(None))
    if before is not None:
        query = query.where(col(ApiToken.id) < before)
    return session.exec(query.order_by(col(ApiToken.id).desc()).limit(limit)).all()


def revoke_token(session: Session, token_id: int, *, actor: Actor, at: datetime) -> None:
    """Make a token useless at once; raises NotFound. Repeatable."""
    row = session.get(ApiToken, token_id)
    if row is None:
        raise NotFound(f"There is no token {token_id}.")
    if row.revoked_at is None:
        row.revoked_at = at
        note(session, actor, "token.revoke", f"token:{token_id}", at=at, name=row.name)


def token_actor(engine: Engine, token: str, *, address: str | None, at: datetime) -> Actor | None:
    """Who *token* speaks for; None when unknown or revoked. Notes its use."""
    with reading(engine) as session:
        query = select(ApiToken).where(ApiToken.token_hash == secret.digest(token))
        row = session.exec(query.where(col(ApiToken.revoked_at).is_(None))).first()
    if row is None:
        return None
    if row.last_used_at is None or at - row.last_used_at >= USE_NOTED_EVERY:
        with writing(engine) as session:
            used = update(ApiToken).where(col(ApiToken.id) == row.id).values(last_used_at=at)
            session.exec(used)
    return Actor(row.name, "token", row.role, address)
