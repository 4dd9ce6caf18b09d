"""The agent as a process of its own, with short waits: ``quick_agent STATE_DIR PORT LOCK [BYTES]``.

LOCK names its turn on this host, BYTES is what a disk has free before a coredump is taken.
"""

import socket
import sys
from dataclasses import replace
from pathlib import Path

import uvicorn

from app.agent.coredump.coredumps import Coredumps
from app.agent.main import create_agent
from app.agent.parts import Agent
from tests.integration.coredump_target import QUICK


def main(state_dir: str, port: str, lock: str, min_free_bytes: str = "1") -> None:
    served = create_agent(Path(state_dir))
    agent: Agent = served.state.agent
    coredumps = Coredumps(
        table=agent.table,
        holds=agent.holds,
        files=agent.files,
        folder=agent.state.folder / "coredumps",
        host=socket.gethostname(),
        limits=replace(QUICK, host_lock=lock, min_free_bytes=int(min_free_bytes)),
    )
    served.state.agent = replace(agent, coredumps=coredumps)
    with socket.create_server(("127.0.0.1", int(port))) as listener:
        config = uvicorn.Config(served, loop="asyncio", http="h11", ws="none", log_config=None)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
