"""``incident-console bundle diff``."""

from pathlib import Path
from typing import Annotated

import orjson
import typer

from app.cli.diff_text import diff_text
from app.cli.fingerprint_key import fingerprint_key
from app.clients.bundle_files import read
from app.domain.bundle_diff import diff
from app.domain.redaction import keyed_fingerprint

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("diff")
def compare(
    before: Annotated[Path, typer.Argument(help="The earlier, usually healthy bundle.")],
    after: Annotated[Path, typer.Argument(help="The later bundle.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """What changed from BEFORE to AFTER: version, launch flags, then effective settings."""
    fingerprint = keyed_fingerprint(fingerprint_key())
    changes = diff(read(before, fingerprint=fingerprint), read(after, fingerprint=fingerprint))
    typer.echo(orjson.dumps(changes) if as_json else diff_text(changes))
