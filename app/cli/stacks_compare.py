"""``incident-console stacks compare``."""

from pathlib import Path
from typing import Annotated

import orjson
import typer

from app.cli.evidence_files import files_under
from app.cli.stacks_text import comparison_text
from app.domain.stacks.compare import compare
from app.domain.stacks.reading import read_files
from app.domain.stacks.told import told
from app.errors import NotFound

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH…", help="Folders or files: py-spy's text or JSON, server logs."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]


@app.command("compare")
def compare_stacks(paths: Paths, *, as_json: AsJson = False) -> None:
    """Which rank differs from its peers, where they part, and whether anything moves.

    Several files of one process in one format are samples of it. Ranks that could not be read
    are listed with the reason, and are never counted for or against anybody. Exit status 0 for
    every verdict, 1 when nothing in PATH has to do with stacks.
    """
    files, passed = files_under(paths)
    for line in passed:
        typer.echo(f"passed over {line}", err=True)
    reading = read_files(files)
    if reading.empty:
        raise NotFound(
            f"No stacks in {len(files)} files.",
            fix="Name the folder that `incident-console stacks take` printed, or py-spy's output.",
        )
    comparison = compare(reading.samples, reading.missing, states=reading.states)
    document = told(comparison, reading)
    typer.echo(orjson.dumps(document) if as_json else comparison_text(document))
