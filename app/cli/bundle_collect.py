"""``incident-console bundle collect``."""

import asyncio
import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer

from app.cli.credentials import credential, headers_of, text_of
from app.cli.fingerprint_key import fingerprint_key
from app.cli.summary_text import capture_line, summary_text
from app.clients.bundle_files import check_new, default_folder, write_archive, write_folder
from app.clients.collector import bundle_of, collect
from app.clients.console import push
from app.clients.target import TargetAddress, TargetClient
from app.domain.bundle import summarise
from app.domain.capture import Bundle, Capture
from app.domain.phases import Plan
from app.domain.redaction import keyed_fingerprint
from app.errors import Interrupted, Misconfigured

app = typer.Typer(add_completion=False, rich_markup_mode=None)
CONSOLE_TOKEN = "INCIDENT_CONSOLE_TOKEN"  # noqa: S105  (the name of a variable)


class Probe(StrEnum):
    """When one token is asked for."""

    AUTO = "auto"
    NEVER = "never"
    ALWAYS = "always"


BaseUrl = Annotated[str, typer.Option(help="Where the server is, with its path prefix.")]
Out = Annotated[Path | None, typer.Option(help="A new folder for the bundle.")]
IntervalSeconds = Annotated[float, typer.Option(min=0, max=3600, help="Between the two scrapes.")]
ProbeWhen = Annotated[
    Probe, typer.Option(help="Ask for one token: only when undecided, never, or always.")
]
DeadlineSeconds = Annotated[
    float, typer.Option(min=1, max=3600, help="For all answers; the interval not counted.")
]
TokenEnv = Annotated[str | None, typer.Option(help="Environment variable with the user API key.")]
TokenFile = Annotated[Path | None, typer.Option(help="File with the user API key.")]
AdminTokenEnv = Annotated[
    str | None, typer.Option(help="Environment variable with the admin API key.")
]
AdminTokenFile = Annotated[Path | None, typer.Option(help="File with the admin API key.")]
HeaderFile = Annotated[
    Path | None, typer.Option(help="File with further headers, one 'Name: value' a line.")
]
CaFile = Annotated[Path | None, typer.Option(help="PEM file of the certificates to trust instead.")]
PushUrl = Annotated[
    str | None, typer.Option("--push", help="Console that gets the bundle as well.")
]
Incident = Annotated[int | None, typer.Option(help="Number of its incident there.")]
PushTokenEnv = Annotated[
    str, typer.Option(help="Environment variable with the console's API token.")
]
AsJson = Annotated[bool, typer.Option("--json", help="The summary as one JSON document.")]


@dataclass(slots=True)
class _Run:
    """One collection from the command line; what landed survives Ctrl-C."""

    address: TargetAddress
    plan: Plan
    done: dict[str, Capture] = field(default_factory=dict)
    interrupted: bool = False

    def bundle(self) -> Bundle:
        """The bundle, or what there was of it when a person stopped it."""
        try:
            return asyncio.run(self._collect())
        except KeyboardInterrupt:
            self.interrupted = True
            return bundle_of(self.done, self.plan, self.address.base_url, datetime.now(UTC))

    async def _collect(self) -> Bundle:
        fingerprint = keyed_fingerprint(fingerprint_key())
        async with TargetClient(self.address, fingerprint=fingerprint) as client:
            return await collect(client, self.plan, landed=self._landed)

    def _landed(self, capture: Capture) -> None:
        self.done[capture.name] = capture
        typer.echo(capture_line(capture), err=True)


@app.command("collect")
def collect_bundle(  # noqa: PLR0913  (each is a flag of its own)
    base_url: BaseUrl,
    *,
    out: Out = None,
    interval_seconds: IntervalSeconds = 10.0,
    probe: ProbeWhen = Probe.AUTO,
    deadline_seconds: DeadlineSeconds = 45.0,
    token_env: TokenEnv = None,
    token_file: TokenFile = None,
    admin_token_env: AdminTokenEnv = None,
    admin_token_file: AdminTokenFile = None,
    header_file: HeaderFile = None,
    ca_file: CaFile = None,
    push_url: PushUrl = None,
    incident: Incident = None,
    push_token_env: PushTokenEnv = CONSOLE_TOKEN,
    as_json: AsJson = False,
) -> None:
    """Collect a read-only bundle of a live server; prints the folder.

    Exit status 0 once the bundle is written, even if nothing answered. Nothing is changed at
    the server; whether one token may be asked for is said by --probe.
    """
    push_token = _push_token(push_url, incident, push_token_env)
    address = TargetAddress(
        base_url,
        token=credential(token_env, token_file),
        admin_token=credential(admin_token_env, admin_token_file),
        headers=headers_of(header_file),
        ca_pem=text_of(ca_file) if ca_file else None,
    )
    if out is not None:
        check_new(out)  # before anything is asked: what was captured must find its place
    run = _Run(address, Plan(probe.value, interval_seconds, deadline_seconds))
    bundle = run.bundle()
    folder = out or default_folder(bundle.collected_at)
    write_folder(bundle, folder)
    _tell(bundle, folder, as_json=as_json)
    if push_url and incident is not None:
        name = f"{folder.name}.zip"
        push(push_url, incident, archive=write_archive(bundle), name=name, token=push_token)
    if run.interrupted:
        raise Interrupted("Stopped by hand; what had landed is kept.")


def _push_token(push_url: str | None, incident: int | None, variable: str) -> str:
    """The token for the console, asked for before anything is collected; empty without --push."""
    if (push_url is None) != (incident is None):
        raise typer.BadParameter("--push and --incident go together.")
    if push_url is None:
        return ""
    token = os.environ.get(variable)
    if not token:
        raise Misconfigured(f"The environment variable {variable} is not set.")
    return token


def _tell(bundle: Bundle, folder: Path, *, as_json: bool) -> None:
    """The folder, or the summary as one JSON document, on stdout; for people on stderr."""
    summary = summarise(bundle)
    if as_json:
        sys.stdout.buffer.write(orjson.dumps({**summary, "folder": str(folder)}) + b"\n")
        return
    typer.echo("\n" + summary_text(summary), err=True)
    typer.echo(str(folder))
