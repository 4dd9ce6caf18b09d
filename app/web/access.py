"""Who asks: found out once for each request, with one query, before anything else is read.

Everything is closed unless it is listed here as open, so a forgotten dependency on a role
shows a page to readers at most, and nobody who is not signed in can send us a body.
"""

from datetime import UTC, datetime
from urllib.parse import urlsplit

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import Unauthenticated
from app.settings import Settings
from app.store.api_tokens import token_actor
from app.store.audit import Actor
from app.store.database import reading
from app.store.sign_in import session_actor
from app.store.stores import Stores

# Pages and answers for people and programs without a session. /metrics checks by itself.
OPEN = ("/login", "/setup/", "/s/", "/healthz", "/readyz", "/metrics", "/api/openapi.json")
# Answered without asking the database who it is: files, and whether the process is alive.
UNASKED = ("/static/", "/healthz", "/readyz")
_COOKIE = "session"


class Access:
    """Puts the actor, or None, into ``request.state.actor``; raises Unauthenticated."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            request.state.actor = None
            if not scope["path"].startswith(UNASKED):
                request.state.actor = await _actor(request)
                _check(request)
        await self.app(scope, receive, send)


async def _actor(request: Request) -> Actor | None:
    if bearer := bearer_token(request):
        return await run_in_threadpool(_of_bearer, request, bearer)
    if cookie := session_cookie(request):
        return await run_in_threadpool(_of_session, request, cookie)
    return None


def _of_bearer(request: Request, token: str) -> Actor:
    stores: Stores = request.app.state.stores
    actor = token_actor(stores.engine, token, address=address(request), at=datetime.now(UTC))
    if actor is None:
        raise Unauthenticated(
            "The bearer token is unknown or revoked.",
            fix="Make one: incident-console token create --name NAME --role ROLE",
        )
    return actor


def _of_session(request: Request, cookie: str) -> Actor | None:
    stores: Stores = request.app.state.stores
    with reading(stores.engine) as session:
        return session_actor(session, cookie, address=address(request), at=datetime.now(UTC))


def _check(request: Request) -> None:
    if request.state.actor is None and not request.url.path.startswith(OPEN):
        raise Unauthenticated("Sign in to see this.", fix="Sign in, or send a bearer token.")


def address(request: Request) -> str | None:
    """Where the request came from. Behind a proxy that is told in TRUSTED_PROXIES, its client."""
    return request.client.host if request.client else None


def bearer_token(request: Request) -> str | None:
    """The token of ``Authorization: Bearer …``; None when there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def is_https(request: Request) -> bool:
    """Whether the browser speaks https to us, directly or through what PUBLIC_URL names."""
    if request.url.scheme == "https":
        return True
    settings: Settings = request.app.state.stores.settings
    public = urlsplit(settings.public_url or "")
    return public.scheme == "https" and public.netloc == request.headers.get("host", "")


def _cookie_name(request: Request) -> str:
    # The prefix binds the cookie to this host, https and path /: a sub-domain cannot set it.
    return f"__Host-{_COOKIE}" if is_https(request) else _COOKIE


def session_cookie(request: Request) -> str | None:
    """The secret of the browser's session; None when it sent none."""
    return request.cookies.get(_cookie_name(request)) or None


def give_session(request: Request, answer: Response, token: str) -> None:
    """Let the browser keep *token* as long as the session lasts here."""
    settings: Settings = request.app.state.stores.settings
    answer.set_cookie(
        _cookie_name(request),
        token,
        max_age=int(settings.session_hours * 3600),
        httponly=True,
        samesite="lax",
        secure=is_https(request),
    )


def take_session(request: Request, answer: Response) -> None:
    """Let the browser forget its session."""
    answer.delete_cookie(
        _cookie_name(request), httponly=True, samesite="lax", secure=is_https(request)
    )
