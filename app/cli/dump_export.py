"""``incident-console dump export``."""

import os
from pathlib import Path
from typing import Annotated

import typer

from app.cli.fingerprint_key import fingerprint_key
from app.cli.summary_text import printable
from app.clients.dumps import Reading, export_file
from app.domain.counting import counted
from app.domain.dumps.redacted import Tier
from app.errors import Conflict, Rejected

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Dump = Annotated[Path, typer.Argument(metavar="PATH", help="A dump, or another file of requests.")]
Out = Annotated[Path, typer.Option("--out", metavar="FILE.jsonl", help="A new file.")]
AtTier = Annotated[
    Tier, typer.Option("--tier", help="T0: shape alone. T1: text without secrets. T2: as it is.")
]


@app.command("export")
def export(path: Dump, *, out: Out, tier: AtTier = "T0") -> None:
    """The requests of a dump as JSON lines, which replay and reduce read.

    At T0 a payload keeps its shape and parameters, lengths in the place of text and token ids, and
    marks that tell which prompts begin alike. At T2 the file holds what people asked the server.
    The file is readable by you alone. Exit status 1 when the dump could not be read as a whole;
    what could be salvaged is written all the same.
    """
    written = 0

    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise Conflict(f"{out} is there already.", fix="Name another one with --out.") from error
    except OSError as error:
        raise Rejected(f"{out} cannot be written: {error.strerror}.") from error
    with os.fdopen(descriptor, "wb") as file:

        def write(line: bytes) -> None:
            nonlocal written
            written += 1
            file.write(line + b"\n")

        document = export_file(path, write, tier, reading=Reading(key=fingerprint_key()))
    typer.echo(f"{out}: {counted(written, 'request')}, tier {tier}", err=True)
    if document["kind"] == "unreadable":
        raise Rejected(printable(f"{document['file']}: {document['problems'][0]}"))
