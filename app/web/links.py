"""URLs in templates: paths only, so that they hold behind any proxy and on any host name."""

import hashlib
from functools import cache, lru_cache

from fastapi import Request
from starlette.applications import Starlette

from app import files

HASH_DIGITS = 12


class Links:
    """The links of one page, under the prefix that the console has at its reader's end.

    Plain methods, not ``pass_context`` functions: for those Jinja makes a context of its own at
    each call in a loop, which was a seventh of drawing the list.
    """

    def __init__(self, request: Request) -> None:
        self._app: Starlette = request.app
        self._prefix = request.base_url.path.rstrip("/")

    def url_for(self, name: str, /, **parameters: object) -> str:
        """The path of the route *name*."""
        return self._prefix + _path(self._app, name, tuple(parameters.items()))

    def asset(self, name: str, /) -> str:
        """The path of a file in static/, with its hash: a new version has another URL."""
        return f"{self.url_for('static', path=name)}?v={fingerprint(name)}"


@lru_cache(maxsize=8192)
def _path(app: Starlette, name: str, parameters: tuple[tuple[str, object], ...]) -> str:
    """Routes do not change while the console runs, and a list has a link in every row."""
    return app.url_path_for(name, **dict(parameters))


@cache
def fingerprint(name: str) -> str:
    """Hex digits that tell one version of a file in static/ from another."""
    return hashlib.sha256((files.STATIC / name).read_bytes()).hexdigest()[:HASH_DIGITS]
