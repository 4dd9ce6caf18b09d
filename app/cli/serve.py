"""``incident-console serve``: the console and its worker in one process."""

import gc
import socket
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Annotated

import typer
import uvicorn
from fastapi import FastAPI

from app.cli.console_data import DataDir, migrated, settings_of
from app.errors import Misconfigured
from app.jobs.engine import Engine
from app.main import create_app
from app.settings import Settings
from app.store import setup
from app.store.database import writing
from app.store.vault import Vault
from app.web import logs

app = typer.Typer(add_completion=False, rich_markup_mode=None)
BACKLOG = 2048
GRACE_SECONDS = 5  # for answers under way; live streams never end by themselves


class _Server(uvicorn.Server):
    """Says where it is once it can be reached, not before."""

    def __init__(self, config: uvicorn.Config, says: list[str]) -> None:
        super().__init__(config)
        self._says = says

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # what is loaded now stays: looking through it stopped every page for 0.1 s
        for line in self._says if self.started else ():
            typer.echo(line)


@app.command()
def serve(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8000,
    data_dir: DataDir = None,
    no_agent: Annotated[
        bool, typer.Option("--no-agent", help="No agent for this host inside the console.")
    ] = False,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Pages only; jobs wait for another worker.")
    ] = False,
) -> None:
    """Run the console. Prints its URL, and a one-time set-up link while there is no user."""
    settings = _trusting(settings_of(data_dir), host)
    with _listen(host, port) as listener:
        url = settings.public_url or f"http://{_shown(host)}:{listener.getsockname()[1]}"
        says = [f"Incident console at {url.rstrip('/')}/", *_first_steps(settings, host, url)]
        logs.configure(settings)
        console = create_app(
            settings, start_work=None if no_worker else Engine.start, with_agent=not no_agent
        )
        with suppress(KeyboardInterrupt):  # raised again by uvicorn after it has stopped
            _Server(_configured(console, settings), says).run(sockets=[listener])


def _configured(console: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        console,
        log_config=None,  # ours is set already
        access_log=False,  # web.logs tells each request
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _first_steps(settings: Settings, host: str, url: str) -> list[str]:
    """Migrates, and makes the first admin possible; what to tell about it, if anything.

    Raises Misconfigured for a host that others reach while nobody can sign in.
    """
    now = datetime.now(UTC)
    with migrated(settings) as engine:
        Vault.open(settings.key_file)  # a key that is none is told here, not in a server's log
        file = settings.first_admin_password_file
        if file and setup.first_admin_from(engine, file, at=now):
            return [f"Made the user {setup.FIRST_ADMIN} with the password in {file}."]
        with writing(engine) as session:
            token = setup.new_link(session, at=now)
            if token and not is_loopback(host):
                raise _open_to_anybody(host)
    if token is None:
        return []
    return [f"No user yet. Make the first admin at {url.rstrip('/')}/setup/{token}"]


def _open_to_anybody(host: str) -> Misconfigured:
    return Misconfigured(
        f"There is no user yet, so the console does not listen on {host}.",
        why="Whoever comes first would become its admin.",
        fix="Make a user first, or serve on 127.0.0.1 and use the set-up link.",
        command="incident-console user create NAME --role admin",
    )


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach *host*; a name other than localhost does not."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _trusting(settings: Settings, host: str) -> Settings:
    """Who listens on an address answers to it."""
    return settings.model_copy(update={"trusted_hosts": (*settings.trusted_hosts, _shown(host))})


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises Misconfigured when the address cannot be had."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise Misconfigured(
            f"The console cannot listen on {_shown(host)}:{port}: {error.strerror or error}.",
            fix="Choose another --port, or stop what listens there.",
        ) from error
