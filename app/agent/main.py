"""The agent's application: signed requests in, signed answers out."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from app.agent import actions, failures, routes
from app.agent.coredump.coredumps import Coredumps
from app.agent.door.guard import Guard
from app.agent.evidence.profiles import Profiles
from app.agent.info import own_version
from app.agent.kept.state import QUOTA_BYTES, AgentState
from app.agent.metrics import Metrics
from app.agent.parts import Agent
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds


def create_agent(
    state_dir: Path,
    *,
    embedded: bool = False,
    key_file: Path | None = None,
    quota_bytes: int = QUOTA_BYTES,
) -> FastAPI:
    """The agent on *state_dir*, made where it is missing; ``app.state.agent`` is its ``Agent``.

    Its lifespan takes the folder and lets go of it. Whoever calls the app without a lifespan
    calls ``app.state.agent.start()`` and ``stop()``. Raises Misconfigured.
    """
    state = AgentState(state_dir, key_file=key_file, quota_bytes=quota_bytes)
    agent = _assembled(state, embedded=embedded)
    app = FastAPI(
        title="Incident agent",
        lifespan=_lifespan,
        openapi_url=None,  # nothing is told to whoever holds no key, and a console needs none
        redirect_slashes=False,  # a redirect leads to what was not signed
    )
    app.state.agent = agent
    app.include_router(routes.router)
    app.include_router(actions.router)
    failures.register(app)
    app.add_middleware(Guard, state=state, metrics=agent.metrics)  # the outermost: it signs
    return app


def _assembled(state: AgentState, *, embedded: bool) -> Agent:
    table, holds, files = ProcessTable(), Holds(), state.files
    return Agent(
        state,
        Metrics(files, own_version()),
        table,
        holds,
        Coredumps(
            table=table,
            holds=holds,
            files=files,
            folder=state.folder / "coredumps",
            host=socket.gethostname(),
        ),
        Profiles(table=table, holds=holds, files=files),
        embedded,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    agent: Agent = app.state.agent
    agent.start()
    try:
        yield
    finally:
        agent.stop()
