"""The agent inside the console, for the host that it runs on."""

import logging
import socket
import sys
from datetime import UTC, datetime

import httpx

from app.agent.main import create_agent
from app.agent.parts import Agent
from app.errors import ConsoleError
from app.store.database import writing
from app.store.own_host import own_host
from app.store.stores import Stores

FOLDER = "agent"  # in the data folder

log = logging.getLogger(__name__)


def embed(stores: Stores) -> Agent | None:
    """Start an agent in this process and register its host; None where it cannot be had.

    It is asked as any other agent, by signed requests, through the memory of this process: it
    listens on no port. Its state folder belongs to one process; the first to come has it.
    """
    if sys.platform != "linux":
        log.info("No agent inside: host actions are absent: Linux only.")
        return None
    try:
        app = create_agent(stores.settings.data_dir.resolve() / FOLDER, embedded=True)
        agent: Agent = app.state.agent
        agent.start()
    except ConsoleError as error:
        log.warning("No agent inside: %s", error.detail)
        return None
    with writing(stores.engine) as session:
        now = datetime.now(UTC)
        name = socket.gethostname()
        own_host(session, name, agent.agent_id, agent.key, vault=stores.vault, at=now)
    stores.agents.embed(agent.agent_id, httpx.ASGITransport(app, raise_app_exceptions=False))
    return agent
