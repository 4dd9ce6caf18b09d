"""API: users, tokens and the audit log. All of it is for admins."""

from collections.abc import Sequence
from datetime import datetime
from secrets import token_urlsafe
from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from app.store import accounts, api_tokens, audit, passwords
from app.store.database import writing
from app.store.tables import ApiToken, AuditEvent, User
from app.web import paging
from app.web.dependencies import Admin, AppStores, Now, Reading, Writing
from app.web.idempotency import IdempotentRoute
from app.web.paging import Cursor, Limit

router = APIRouter(prefix="/api/v1", tags=["accounts"], route_class=IdempotentRoute)
Role = Literal["reader", "operator", "admin"]


class NewToken(BaseModel):
    name: str = Field(max_length=64, description="Of the program that will use it.")
    role: Role


class TokenTold(BaseModel):
    id: int
    name: str
    role: Role
    created_at: datetime
    created_by: str
    last_used_at: datetime | None


class TokenMade(TokenTold):
    token: str = Field(description="The secret; it is told this once.")


class NewUser(BaseModel):
    name: str = Field(max_length=64)
    role: Role
    password: str | None = Field(
        None, max_length=passwords.MAX_LENGTH, description="Made and told once when left out."
    )


class UserTold(BaseModel):
    name: str
    role: Role
    created_at: datetime
    disabled_at: datetime | None


class UserMade(UserTold):
    password: str | None = Field(None, description="Only where the console made it.")


class AuditTold(BaseModel):
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    address: str | None


class Tokens(BaseModel):
    items: list[TokenTold]
    next_cursor: str | None


class Users(BaseModel):
    items: list[UserTold]
    next_cursor: str | None


class AuditLines(BaseModel):
    items: list[AuditTold]
    next_cursor: str | None


@router.get("/tokens", summary="Tokens that work, newest first")
def list_tokens(
    _admin: Admin, session: Reading, limit: Limit = 50, cursor: Cursor = None
) -> Tokens:
    rows = api_tokens.list_tokens(session, limit=limit + 1, before=paging.number(cursor))
    items = [TokenTold(**row.model_dump()) for row in rows[:limit]]
    return Tokens(items=items, next_cursor=_next(rows, limit))


@router.post("/tokens", status_code=201, summary="Make a token")
def create_token(actor: Admin, session: Writing, now: Now, new: NewToken) -> TokenMade:
    row, token = api_tokens.create_token(session, new.name, role=new.role, actor=actor, at=now)
    return TokenMade(**row.model_dump(), token=token)


@router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a token at once")
def revoke_token(actor: Admin, session: Writing, now: Now, token_id: int) -> Response:
    api_tokens.revoke_token(session, token_id, actor=actor, at=now)
    return Response(status_code=204)


@router.get("/users", summary="Users by name, disabled ones included")
def list_users(_admin: Admin, session: Reading, limit: Limit = 50, cursor: Cursor = None) -> Users:
    rows = accounts.list_users(session, limit=limit + 1, after=paging.name(cursor))
    more = len(rows) > limit
    return Users(
        items=[UserTold(**row.model_dump()) for row in rows[:limit]],
        next_cursor=paging.encode([rows[limit - 1].name]) if more else None,
    )


@router.post("/users", status_code=201, summary="Add a user")
def create_user(actor: Admin, stores: AppStores, now: Now, new: NewUser) -> UserMade:
    made = None if new.password else token_urlsafe(16)
    password_hash = passwords.hashed(new.password or made or "")
    with writing(stores.engine) as session:
        user: User = accounts.create_user(
            session, new.name, role=new.role, password_hash=password_hash, actor=actor, at=now
        )
    return UserMade(**user.model_dump(), password=made)


@router.get("/audit", summary="The audit log, newest first")
def audit_log(
    _admin: Admin, session: Reading, limit: Limit = 50, cursor: Cursor = None
) -> AuditLines:
    rows = audit.newest(session, limit=limit + 1, before=paging.number(cursor))
    items = [AuditTold(**row.model_dump()) for row in rows[:limit]]
    return AuditLines(items=items, next_cursor=_next(rows, limit))


def _next(rows: Sequence[ApiToken] | Sequence[AuditEvent], limit: int) -> str | None:
    return paging.encode([rows[limit - 1].id]) if len(rows) > limit else None
