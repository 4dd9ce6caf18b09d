"""URLs in templates: paths only, so that they hold behind any proxy and on any host name."""

import hashlib
from functools import cache, lru_cache

from fastapi import Request
from jinja2 import pass_context
from jinja2.runtime import Context
from starlette.applications import Starlette

from app import files

HASH_DIGITS = 12


@pass_context
def url_for(context: Context, name: str, /, **parameters: object) -> str:
    """The path of the route *name*."""
    request: Request = context["request"]
    path = _path(request.app, name, tuple(parameters.items()))
    return request.base_url.path.rstrip("/") + path


@lru_cache(maxsize=8192)
def _path(app: Starlette, name: str, parameters: tuple[tuple[str, object], ...]) -> str:
    """Routes do not change while the console runs, and a list has a link in every row."""
    return app.url_path_for(name, **dict(parameters))


@pass_context
def asset(context: Context, name: str, /) -> str:
    """The path of a file in static/, with its hash: a new version has another URL."""
    request: Request = context["request"]
    return f"{request.url_for('static', path=name).path}?v={fingerprint(name)}"


@cache
def fingerprint(name: str) -> str:
    """Hex digits that tell one version of a file in static/ from another."""
    return hashlib.sha256((files.STATIC / name).read_bytes()).hexdigest()[:HASH_DIGITS]
