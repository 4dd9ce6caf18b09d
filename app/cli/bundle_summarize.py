"""``incident-console bundle summarize``."""

from pathlib import Path
from typing import Annotated

import orjson
import typer

from app.cli.fingerprint_key import fingerprint_key
from app.cli.summary_text import summary_text
from app.clients.bundle_files import read
from app.domain.bundle import summarise
from app.domain.redaction import keyed_fingerprint

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def summarize(
    path: Annotated[Path, typer.Argument(help="A bundle's folder or archive.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """What the bundle at PATH says: verdict, endpoints, load of each rank, latency, signals."""
    bundle = read(path, fingerprint=keyed_fingerprint(fingerprint_key()))
    summary = summarise(bundle)
    typer.echo(orjson.dumps(summary) if as_json else summary_text(summary))
