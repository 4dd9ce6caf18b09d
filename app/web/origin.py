"""Which requests are ours: the host they name, and the page they come from.

Cross-site requests are told by what browsers say themselves, as Go's CrossOriginProtection
does: ``Sec-Fetch-Site`` where present, otherwise ``Origin`` or ``Referer`` against ``Host``.
Browsers send ``Sec-Fetch-Site`` on https and loopback only, and ``Origin`` with every unsafe
method; a request with none of the three comes from a program. A bearer token cannot be sent
by a foreign page, so such requests need no check. Methods are allow-listed, so that a new
one is checked rather than forgotten (Ray's CVE-2026-27482 forgot DELETE).
"""

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import Forbidden, UnknownHost
from app.settings import Settings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# A share is opened by people without a session: there is nothing to ride on, and its
# no-referrer policy makes browsers send ``Origin: null``.
_NO_SESSION_USED = "/s/"
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")


def trusted_hosts(settings: Settings) -> tuple[str, ...]:
    """Host names that requests may name, without port; ``*.`` opens all sub-domains."""
    public = _HOST.fullmatch(urlsplit(settings.public_url or "").netloc.lower())
    return (*settings.trusted_hosts, public["name"]) if public else settings.trusted_hosts


def is_trusted(host: str, trusted: tuple[str, ...]) -> bool:
    """Whether a Host header, with or without port, names one of *trusted*."""
    told = _HOST.fullmatch(host.lower())
    return told is not None and any(_matches(told["name"], name.lower()) for name in trusted)


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return pattern in ("*", name)


def is_cross_site(headers: Headers, own: frozenset[str]) -> bool:
    """Whether a browser says that another site sent this; *own* are our hosts with port."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    source = headers.get("origin") or headers.get("referer")
    return source is not None and urlsplit(source).netloc.lower() not in own


class OriginCheck:
    """Refuses unknown hosts, and unsafe methods that another site sent."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._trusted = trusted_hosts(settings)
        self._public = urlsplit(settings.public_url or "").netloc.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            self._check_host(headers)
            self._check_source(scope, headers)
        await self.app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        if not is_trusted(headers.get("host", ""), self._trusted):
            raise UnknownHost(
                "This console does not answer to that host name.",
                why="An unknown name in the Host header may be a rebinding attack.",
                fix="Add the name to INCIDENT_CONSOLE_TRUSTED_HOSTS, or set PUBLIC_URL.",
            )

    def _check_source(self, scope: Scope, headers: Headers) -> None:
        if scope["method"] in SAFE_METHODS or scope["path"].startswith(_NO_SESSION_USED):
            return
        if headers.get("authorization", "").lower().startswith("bearer "):
            return
        own = frozenset({headers.get("host", "").lower(), self._public} - {""})
        if is_cross_site(headers, own):
            raise Forbidden(
                "Another site sent this request, so nothing was changed.",
                why="Changes are taken from the console's own pages only.",
                fix="Open the console and press the button there, or send a bearer token.",
            )
