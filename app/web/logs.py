"""One JSON line for each event, on stderr, with the request and the incident it belongs to.

Lines tell the route's template, never the query, a header or a body, so that no token gets
into them; control characters are escaped, so that no input can forge a line.
"""

import logging
import re
import sys
import time
from secrets import token_hex
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.settings import Settings
from app.web.formats import visible
from app.web.metrics import Metrics

HEADER = "X-Request-ID"
_USABLE_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_INCIDENT = re.compile(r"/(?:incidents|reports)/([0-9]{1,18})(?:[/.]|$)")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_QUIET = frozenset({"/static", "/healthz", "/readyz", "/metrics"})  # asked for all the time
_log = structlog.get_logger()


def configure(settings: Settings) -> None:
    """Send structlog and the standard library's logging to stderr as *settings* ask."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            *_ending(settings),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=settings.log_level.upper(), force=True)
    # At "debug" it tells all headers of an answer, and a target may echo what we sent.
    logging.getLogger("httpcore").setLevel(logging.INFO)
    # It tells each request to an agent: several lines for every look at a host.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _ending(settings: Settings) -> list[structlog.typing.Processor]:
    on_terminal = sys.stderr.isatty()
    if settings.log_format == "json" or (settings.log_format == "auto" and not on_terminal):
        return [structlog.processors.JSONRenderer()]
    return [_make_visible, structlog.dev.ConsoleRenderer(colors=on_terminal)]


def _make_visible(
    _logger: Any,  # noqa: ANN401  (structlog's own signature)
    _method: str,
    event: structlog.typing.EventDict,
) -> structlog.typing.EventDict:
    """Keep every event to one line; only a traceback goes on, indented, in further ones."""
    for key, value in event.items():
        if isinstance(value, str):
            line_end = "\n    " if key == "exception" else "\\n"
            event[key] = visible(value).replace("\n", line_end)
    return event


class RequestLog:
    """Numbers each request, tells the number in the answer, logs and counts the answer."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        told = _INCIDENT.search(scope["path"])
        context = {"request_id": request_id} | ({"incident_id": int(told[1])} if told else {})
        status, started = 0, time.perf_counter()

        async def send_numbered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(**context):
            try:
                await self.app(scope, receive, send_numbered)
            finally:
                self._tell(scope, status, time.perf_counter() - started)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = _route(scope)
        self._metrics.observe(method, route, status, seconds)
        level = logging.DEBUG if route in _QUIET else logging.INFO
        ms = round(seconds * 1e3, 1)
        _log.log(level, "request", method=method, route=route, status=status, ms=ms)


def _request_id(scope: Scope) -> str:
    """What a proxy in front of us calls the request, if that is a plain word; else our own."""
    given = Headers(scope=scope).get(HEADER, "")
    return given if _USABLE_ID.fullmatch(given) else token_hex(8)


def _route(scope: Scope) -> str:
    """The template of the path; "none" where nothing matched, so that labels stay few."""
    if scope["path"].startswith("/static/"):
        return "/static"
    return str(getattr(scope.get("route"), "path", "none"))
