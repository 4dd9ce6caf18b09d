"""Pages: signing in and out, and the one-time set-up."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from app.errors import ConsoleError, Rejected, Throttled
from app.store import passwords, setup
from app.store.accounts import any_user
from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.sign_in import sign_in, sign_out, start_session
from app.web import access
from app.web.dependencies import AppShell, AppStores, Now, Reading, Writing, current_actor
from app.web.failures import STATUS, headers_of
from app.web.render import render
from app.web.views.access import LoginPage, SetupPage
from app.web.views.errors import Trouble

router = APIRouter(include_in_schema=False)

Name = Annotated[str, Form(max_length=64)]
Password = Annotated[str, Form(max_length=passwords.MAX_LENGTH)]
Next = Annotated[str, Form(max_length=2000)]


def own_path(to: str, otherwise: str) -> str:
    """*to* if it is a path on this console, else *otherwise*: nobody is sent to another site."""
    # Browsers read a backslash as a slash and drop control characters: //evil, /\\evil, /\t/evil.
    plain = to.isprintable() and "\\" not in to
    return to if plain and to.startswith("/") and not to.startswith("//") else otherwise


@router.get("/login", name="login")
def login_page(
    request: Request,
    shell: AppShell,
    session: Reading,
    next: str = "",  # noqa: A002  (the parameter's name in the URL)
) -> Response:
    to = own_path(next, "")
    return render(request, LoginPage(shell, to, "", None, no_user_yet=not any_user(session)))


@router.post("/login")
def login(  # noqa: PLR0913
    *,
    request: Request,
    stores: AppStores,
    shell: AppShell,
    now: Now,
    name: Name,
    password: Password,
    next: Next = "",  # noqa: A002
) -> Response:
    to = own_path(next, request.url_for("incidents").path)
    try:
        token = sign_in(
            stores.engine,
            name.strip(),
            password,
            address=access.address(request),
            hours=stores.settings.session_hours,
            at=now,
        )
    except (Rejected, Throttled) as error:
        page = LoginPage(shell, own_path(next, ""), name, _trouble(error), no_user_yet=False)
        return _refused(request, page, error)
    answer = RedirectResponse(to, 303)
    access.give_session(request, answer, token)
    return answer


@router.post("/logout", name="logout")
def logout(request: Request, session: Writing, now: Now) -> Response:
    actor, cookie = current_actor(request), access.session_cookie(request)
    if actor and cookie:
        sign_out(session, cookie, actor=actor, at=now)
    answer = RedirectResponse(request.url_for("login").path, 303)
    access.take_session(request, answer)
    return answer


@router.get("/setup/{token}", name="setup")
def setup_page(
    request: Request, shell: AppShell, session: Reading, now: Now, token: str
) -> Response:
    setup.check_link(session, token, at=now)
    return render(request, SetupPage(shell, token, "", None, passwords.MIN_LENGTH))


@router.post("/setup/{token}")
def set_up(  # noqa: PLR0913
    *,
    request: Request,
    stores: AppStores,
    shell: AppShell,
    now: Now,
    token: str,
    name: Name,
    password: Password,
) -> Response:
    with reading(stores.engine) as session:
        setup.check_link(session, token, at=now)
    address = access.address(request)
    actor = Actor(name, "user", "admin", address)
    try:
        password_hash = passwords.hashed(password)
        with writing(stores.engine) as session:
            user = setup.use_link(
                session, token, name=name, password_hash=password_hash, at=now, actor=actor
            )
            hours = stores.settings.session_hours
            cookie = start_session(session, user, address=address, hours=hours, at=now)
    except Rejected as error:
        page = SetupPage(shell, token, name, _trouble(error), passwords.MIN_LENGTH)
        return _refused(request, page, error)
    answer = RedirectResponse(request.url_for("incidents").path, 303)
    access.give_session(request, answer, cookie)
    return answer


def _trouble(error: ConsoleError) -> Trouble:
    return Trouble(STATUS[type(error)], error.what, error.why, error.fix, error.command)


def _refused(request: Request, page: LoginPage | SetupPage, error: ConsoleError) -> Response:
    """The form again, with the status that tells programs that it did not work."""
    answer = render(request, page, status=STATUS[type(error)])
    answer.headers.update(headers_of(error))
    return answer
