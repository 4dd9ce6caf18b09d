"""The one place where errors become answers: a page, a notice inside a page, or JSON.

Everything raised on purpose has its status here; everything else is a 500 that shows the
number of the request and nothing of the inside.
"""

from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import quote, urlsplit

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import errors
from app.errors import ConsoleError
from app.web.answers import from_htmx
from app.web.render import render
from app.web.views import Shell
from app.web.views.errors import ErrorNotice, ErrorPage, Trouble

STATUS: dict[type[ConsoleError], HTTPStatus] = {
    errors.ConsoleError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Damaged: HTTPStatus.CONFLICT,
    errors.Rejected: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.Malformed: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.UnknownHost: HTTPStatus.BAD_REQUEST,
    errors.Throttled: HTTPStatus.TOO_MANY_REQUESTS,
    errors.NoSpace: HTTPStatus.INSUFFICIENT_STORAGE,
    errors.Unreachable: HTTPStatus.BAD_GATEWAY,
    errors.Misconfigured: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.Interrupted: HTTPStatus.CONFLICT,
}
# What the framework refuses by itself, in our words.
_OURS = {
    400: errors.Malformed("The request cannot be read."),
    404: errors.NotFound("There is nothing at this address."),
    413: errors.TooLarge("The request is larger than the limit."),
}
_FOR_PROGRAMS = ("/api/", "/metrics", "/healthz", "/readyz")
_log = structlog.get_logger()


def respond(request: Request, error: ConsoleError) -> Response:
    """The answer that tells *error* to whoever asked, in the form they can read."""
    status = STATUS[type(error)]
    login = _login(request) if status == HTTPStatus.UNAUTHORIZED else None
    if _wants_json(request):
        content = {"error": error.code, "detail": error.detail}
        return JSONResponse(content, status, headers=headers_of(error))
    if login and request.method == "GET" and not from_htmx(request):
        return RedirectResponse(login, HTTPStatus.SEE_OTHER)
    trouble = Trouble(
        status=status,
        what=error.what,
        why=error.why,
        fix=error.fix,
        command=error.command,
        sign_in=login,
        request_id=request.state.request_id if status >= HTTPStatus.INTERNAL_SERVER_ERROR else None,
    )
    answer = _told(request, trouble)
    answer.headers.update(headers_of(error))
    return answer


def _told(request: Request, trouble: Trouble) -> Response:
    if from_htmx(request):
        answer = render(request, ErrorNotice(trouble), status=trouble.status)
        answer.headers.update({"HX-Retarget": "#notice", "HX-Reswap": "outerHTML"})
        return answer
    return render(request, ErrorPage(_shell(request), trouble), status=trouble.status)


def _shell(request: Request) -> Shell:
    """A shell that needs no database: it may be the database that failed."""
    theme = request.cookies.get("theme", "")
    return Shell(
        actor=getattr(request.state, "actor", None),
        failing=0,
        now=datetime.now(UTC),
        theme=theme if theme in ("light", "dark") else "",
    )


def _wants_json(request: Request) -> bool:
    accepts = request.headers.get("accept", "")
    return request.url.path.startswith(_FOR_PROGRAMS) or (
        "application/json" in accepts and "text/html" not in accepts
    )


def _login(request: Request) -> str:
    """Where to sign in, coming back to the page that was asked for or that htmx stands in."""
    stands_in = request.headers.get("HX-Current-URL") if from_htmx(request) else None
    shown = stands_in or (str(request.url) if request.method == "GET" else "")
    page = urlsplit(shown)
    here = page.path + (f"?{page.query}" if page.query else "")
    return f"{request.scope.get('root_path', '')}/login" + (f"?next={quote(here)}" if here else "")


def headers_of(error: ConsoleError) -> dict[str, str]:
    """What the status of *error* calls for beside the body."""
    match error:
        case errors.Throttled():
            return {"Retry-After": str(error.retry_after_seconds)}
        case errors.Unauthenticated():
            return {"WWW-Authenticate": "Bearer"}
        case _:
            return {}


def _on_purpose(request: Request, error: Exception) -> Response:
    assert isinstance(error, ConsoleError)
    return respond(request, error)


def _invalid(request: Request, error: Exception) -> Response:
    """Which fields are wrong and why; never the values, which may be secrets."""
    assert isinstance(error, RequestValidationError)
    told = "; ".join(f"{_place(fault['loc'])}: {fault['msg']}" for fault in error.errors()[:8])
    return respond(request, errors.Malformed(f"The request cannot be read: {told}."))


def _place(location: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in location[1:]) or str(location[0])


def _of_framework(request: Request, error: Exception) -> Response:
    """404, 405 and whatever else Starlette raises, with its headers (Allow)."""
    assert isinstance(error, HTTPException)
    if ours := _OURS.get(error.status_code):
        return respond(request, ours)
    what = f"This address does not take that: {error.detail}."
    if _wants_json(request):
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
        answer: Response = JSONResponse({"error": code, "detail": what}, error.status_code)
    else:
        answer = _told(request, Trouble(status=error.status_code, what=what))
    answer.headers.update(error.headers or {})
    return answer


def _number_too_large(request: Request, _error: Exception) -> Response:
    """Databases take numbers of 64 bits; no row of ours has a larger one."""
    return respond(request, errors.NotFound("There is nothing with such a number."))


def register(app: FastAPI) -> None:
    """Let *app* answer errors our way."""
    app.add_exception_handler(ConsoleError, _on_purpose)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(OverflowError, _number_too_large)  # of SQLite
    app.add_exception_handler(DataError, _number_too_large)  # of PostgreSQL


class LastResort:
    """Answers what nothing else caught: errors of the middleware inside, and our own mistakes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        except ConsoleError as error:
            answer = respond(Request(scope), error)
        except ClientDisconnect:  # nobody is left to be told
            return
        except Exception:
            # The one broad except of the web: a mistake of ours becomes a page and a log line.
            # Not the path: a share's holds its secret. The request's own line tells the route.
            _log.exception("request failed")
            if started:  # the client must not take half an answer for a whole one
                raise
            answer = respond(Request(scope), _our_mistake())
        else:
            return
        await answer(scope, receive, send)


def _our_mistake() -> ConsoleError:
    return ConsoleError(
        "The console made a mistake and could not finish this.",
        why="The cause is in the console's log, under the number of the request.",
        fix="Give that number to whoever runs the console.",
    )
