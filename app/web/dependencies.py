"""What endpoints ask for, each by one name: the signature tells who may call and what it writes.

What asks no database is ``async``, as FastAPI takes every other function to a thread and back.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request
from sqlmodel import Session

from app.errors import Forbidden, Unauthenticated
from app.store import database
from app.store.audit import Actor
from app.store.incidents import count_failing
from app.store.stores import Stores
from app.web.views import Shell

RANKS = {"reader": 0, "operator": 1, "admin": 2}


async def _stores(request: Request) -> Stores:
    stores: Stores = request.app.state.stores
    return stores


AppStores = Annotated[Stores, Depends(_stores)]


def _reading(stores: AppStores) -> Iterator[Session]:
    with database.reading(stores.engine) as session:
        yield session


def _writing(stores: AppStores) -> Iterator[Session]:
    with database.writing(stores.engine) as session:
        yield session


Reading = Annotated[Session, Depends(_reading)]
# Commits before the response leaves: with FastAPI's default scope a page could ask for a row
# that is not committed yet, and a failing commit would have been answered 200.
Writing = Annotated[Session, Depends(_writing, scope="function")]


async def _now() -> datetime:
    return datetime.now(UTC)


Now = Annotated[datetime, Depends(_now)]


def current_actor(request: Request) -> Actor | None:
    """Who asks, as ``web.access`` found out; None when nobody is signed in."""
    actor: Actor | None = request.state.actor
    return actor


def demand(actor: Actor, least: str) -> None:
    """Raises Forbidden where *actor* has not at least that role."""
    if RANKS[actor.role] < RANKS[least]:
        raise Forbidden(
            f"This needs the role {least}; {actor.name} is {actor.role}.",
            fix="Ask an admin for the role.",
        )


class _Role:
    """Lets through those who have at least this role."""

    def __init__(self, least: str) -> None:
        self.least = least

    async def __call__(self, request: Request) -> Actor:
        actor = current_actor(request)
        if actor is None:
            raise Unauthenticated("Sign in to see this.", fix="Sign in, or send a bearer token.")
        demand(actor, self.least)
        return actor


Reader = Annotated[Actor, Depends(_Role("reader"))]
Operator = Annotated[Actor, Depends(_Role("operator"))]
Admin = Annotated[Actor, Depends(_Role("admin"))]


def _shell(request: Request, session: Reading, now: Now) -> Shell:
    actor = current_actor(request)
    theme = request.cookies.get("theme", "")
    return Shell(
        actor=actor,
        failing=count_failing(session) if actor else 0,
        now=now,
        theme=theme if theme in ("light", "dark") else "",
        section=request.url.path.strip("/").split("/")[0] or "incidents",
    )


AppShell = Annotated[Shell, Depends(_shell)]
