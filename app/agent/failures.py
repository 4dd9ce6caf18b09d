"""Where the agent's errors become answers: JSON with what happened and the one fix."""

from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import JSONResponse, Response

from app import errors
from app.errors import ConsoleError

STATUS: dict[type[ConsoleError], HTTPStatus] = {
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Damaged: HTTPStatus.CONFLICT,
    errors.Rejected: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.Malformed: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.Throttled: HTTPStatus.TOO_MANY_REQUESTS,
    errors.NoSpace: HTTPStatus.INSUFFICIENT_STORAGE,
    errors.Unreachable: HTTPStatus.BAD_GATEWAY,
}
_log = structlog.get_logger()


def answer_to(error: ConsoleError) -> Response:
    """*error* as the console reads it."""
    status = STATUS.get(type(error), HTTPStatus.INTERNAL_SERVER_ERROR)
    return said(status, error.code, error)


def said(status: int, code: str, error: ConsoleError) -> Response:
    """The words of *error* under a status and a code."""
    detail = " ".join(part for part in (error.what, error.why) if part)
    content = {"error": code, "detail": detail, "fix": error.fix, "command": error.command}
    return JSONResponse(content, status)


def _on_purpose(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ConsoleError)
    return answer_to(error)


def _invalid(_request: Request, error: Exception) -> Response:
    """Which fields are wrong and why, never their values."""
    assert isinstance(error, RequestValidationError)
    told = "; ".join(
        f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
        for fault in error.errors()[:8]
    )
    return answer_to(errors.Malformed(f"The request cannot be read: {told}."))


def _of_framework(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return said(error.status_code, code, ConsoleError(f"The agent does not take that: {code}."))


async def _our_mistake(_request: Request, error: Exception) -> Response:
    """What is told of an error that nobody foresaw; the log has the rest."""
    _log.error("request failed", exc_info=error)
    return answer_to(
        ConsoleError(
            "The agent made a mistake and could not finish this.",
            fix="The cause is in the agent's log.",
        )
    )


def register(app: FastAPI) -> None:
    """Let *app* answer errors our way.

    Whatever wraps the answers of *app* is to be added after this. An error that nobody foresaw
    gets its handler in a middleware of its own: Starlette would answer it outside of all others,
    where no answer is signed any more, and raise it once more.
    """
    app.add_exception_handler(ConsoleError, _on_purpose)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_middleware(ExceptionMiddleware, handlers={Exception: _our_mistake})
