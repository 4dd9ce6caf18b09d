"""Pages: the reader's own account, and for admins users and tokens."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from app.errors import Forbidden, Rejected
from app.store import accounts, api_tokens, passwords
from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.sign_in import start_session
from app.web import access
from app.web.answers import done
from app.web.dependencies import Admin, AppShell, AppStores, Now, Reader, Reading, Writing
from app.web.render import render
from app.web.views.settings import FreshToken, People, SettingsPage

router = APIRouter(prefix="/settings", include_in_schema=False)

Name = Annotated[str, Form(max_length=64)]
Role = Annotated[str, Form(max_length=20)]
Password = Annotated[str, Form(max_length=passwords.MAX_LENGTH)]


@router.get("", name="settings")
def settings_page(request: Request, _reader: Reader, shell: AppShell, session: Reading) -> Response:
    people = _people(session) if shell.is_admin else None
    return render(request, SettingsPage(shell, people, None, passwords.MIN_LENGTH))


@router.post("/password", name="own_password")
def own_password(
    request: Request, actor: Reader, stores: AppStores, now: Now, present: Password, fresh: Password
) -> Response:
    """Change it; this browser goes on with a new session, all others end."""
    _check_own(stores, actor, present)
    password_hash = passwords.hashed(fresh)
    with writing(stores.engine) as session:
        accounts.change_password(session, actor.name, password_hash, actor=actor, at=now)
        user = accounts.get_user(session, actor.name)
        hours = stores.settings.session_hours
        token = start_session(session, user, address=actor.address, hours=hours, at=now)
    answer = done(request, to=request.url_for("settings").path)
    access.give_session(request, answer, token)
    return answer


@router.post("/users", name="add_user")
def add_user(  # noqa: PLR0913
    *,
    request: Request,
    actor: Admin,
    stores: AppStores,
    now: Now,
    name: Name,
    role: Role,
    password: Password,
) -> Response:
    password_hash = passwords.hashed(password)
    with writing(stores.engine) as session:
        accounts.create_user(
            session, name, role=role, password_hash=password_hash, actor=actor, at=now
        )
    return done(request, to=request.url_for("settings").path)


@router.post("/users/{name}/disable", name="disable_user")
def disable_user(request: Request, actor: Admin, session: Writing, now: Now, name: str) -> Response:
    accounts.disable_user(session, name, actor=actor, at=now)
    return done(request, to=request.url_for("settings").path)


@router.post("/tokens", name="add_token")
def add_token(  # noqa: PLR0913
    *,
    request: Request,
    actor: Admin,
    shell: AppShell,
    session: Writing,
    now: Now,
    name: Name,
    role: Role,
) -> Response:
    """The page with the token on it: it must not go into a URL, so there is no redirect."""
    row, token = api_tokens.create_token(session, name, role=role, actor=actor, at=now)
    fresh = FreshToken(row.name, token)
    page = SettingsPage(shell, _people(session), fresh, passwords.MIN_LENGTH)
    return render(request, page, status=201)


@router.post("/tokens/{token_id}/revoke", name="revoke_token")
def revoke_token(
    request: Request, actor: Admin, session: Writing, now: Now, token_id: int
) -> Response:
    api_tokens.revoke_token(session, token_id, actor=actor, at=now)
    return done(request, to=request.url_for("settings").path)


def _people(session: Reading) -> People:
    users, tokens = accounts.list_users(session), api_tokens.list_tokens(session)
    return People(users, tokens, accounts.ROLES)


def _check_own(stores: AppStores, actor: Actor, password: str) -> None:
    if actor.kind != "user":
        raise Forbidden("A token has no password.", fix="Sign in with a name and a password.")
    with reading(stores.engine) as session:
        user = accounts.get_user(session, actor.name)
    if not passwords.fits(password, user.password_hash):
        raise Rejected("The present password does not fit.", fix="Nothing was changed. Try again.")
