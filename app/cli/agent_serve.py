"""``incident-console agent``: signed requests on loopback, off it with TLS only."""

import gc
import logging
import shlex
import socket
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated

import structlog
import typer
import uvicorn
from fastapi import FastAPI

from app.agent.door.certificate import fingerprint, own_certificate
from app.agent.door.connections import MOST_CONNECTIONS, Connection
from app.agent.kept.state import QUOTA_BYTES
from app.agent.main import create_agent
from app.agent.parts import Agent
from app.cli.agent_state import KeyFile, StateDir, state_folder
from app.errors import Misconfigured

app = typer.Typer(add_completion=False, rich_markup_mode=None)
GRACE_SECONDS = 5

Pem = tuple[Path, Path]  # certificate and key


class _Server(uvicorn.Server):
    """Says how to register the agent once it can be reached, and at its end hurries what it does.

    What takes long then answers with what it has while there is still somebody to answer.
    """

    def __init__(self, config: uvicorn.Config, says: list[str], stopping: Event) -> None:
        super().__init__(config)
        self._says, self._stopping = says, stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        for line in self._says if self.started else ():
            typer.echo(line)


@app.command()
def serve(  # noqa: PLR0913  (the options of interface §1)
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8400,
    state_dir: StateDir = None,
    key_file: KeyFile = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, PEM.")] = None,
    quota_bytes: Annotated[
        int, typer.Option(min=0, help="What it keeps at most; nothing is removed for more.")
    ] = QUOTA_BYTES,
) -> None:
    """Run the agent of this host. Prints how a console gets to know it."""
    folder = state_folder(state_dir)
    served = create_agent(folder, key_file=key_file, quota_bytes=quota_bytes)
    agent: Agent = served.state.agent
    agent.start()  # before it listens: another one on this folder is told here
    try:
        pem = _pem(folder, host, tls_cert, tls_key)
        with _listen(host, port) as listener:
            says = _registration(agent, host, listener.getsockname()[1], pem)
            _log_to_stderr()
            with suppress(KeyboardInterrupt):  # raised again by uvicorn after it has stopped
                _Server(_configured(served, pem), says, agent.stopping).run(sockets=[listener])
    finally:
        agent.stop()


def _pem(folder: Path, host: str, given_cert: Path | None, given_key: Path | None) -> Pem | None:
    """What TLS is spoken with; None on loopback, where none is needed."""
    if given_cert and given_key:
        return given_cert, given_key
    if given_cert or given_key:
        raise Misconfigured("--tls-cert and --tls-key belong together.")
    return None if _is_loopback(host) else own_certificate(folder, socket.gethostname())


def _configured(served: FastAPI, pem: Pem | None) -> uvicorn.Config:
    return uvicorn.Config(
        served,
        loop="asyncio",
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who asks from loopback is decided by the connection alone
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=pem[0] if pem else None,
        ssl_keyfile=pem[1] if pem else None,
    )


def _registration(agent: Agent, host: str, port: int, pem: Pem | None) -> list[str]:
    """What a person needs to register this agent; never the key itself: this may be a log."""
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else host  # noqa: S104
    url = f"{'https' if pem else 'http'}://{f'[{shown}]' if ':' in shown else shown}:{port}"
    show = ["incident-console", "agent", "key", "--state-dir", str(agent.state.folder)]
    if agent.state.key_file.parent != agent.state.folder:
        show = [*show, "--key-file", str(agent.state.key_file)]
    return [
        f"Agent {agent.agent_id} of {socket.gethostname()} at {url}",
        "Register it in the console under Hosts, with",
        f"  URL          {url}",
        f"  key          {agent.state.key_file}, shown by: {shlex.join(show)}",
        f"  fingerprint  {fingerprint(pem[0]) if pem else 'none: loopback only, without TLS'}",
    ]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise Misconfigured(
            f"The agent cannot listen on {host}:{port}: {error.strerror or error}.",
            fix="Choose another --port, or stop what listens there.",
        ) from error


def _log_to_stderr() -> None:
    """Warnings and errors as JSON lines; what was asked and done is in the ledger."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.WARNING)  # uvicorn's own
