"""``incident-console stacks compare``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.evidence_files import files_under
from app.cli.ras_text import ras_text
from app.cli.stacks_text import comparison_text
from app.domain.counting import counted
from app.domain.ras.files import counts_beside, look_into, part
from app.domain.ras.told import told as ras_told
from app.domain.stacks.compare import compare
from app.domain.stacks.reading import read_files
from app.domain.stacks.told import told
from app.errors import NotFound

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH…", help="Folders or files: py-spy's text or JSON, server logs, NCCL RAS."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]


@app.command("compare")
def compare_stacks(paths: Paths, *, as_json: AsJson = False) -> None:
    """Which rank differs from its peers, where they part, and whether anything moves.

    Several files of one process in one format are samples of it. Ranks that could not be read
    are listed with the reason, and are never counted for or against anybody. Answers of NCCL's
    RAS among the files are told, and their counts sharpen the comparison. Exit status 0 for
    every verdict, 1 when nothing in PATH has to do with stacks.
    """
    files, passed = files_under(paths)
    for line in passed:
        typer.echo(f"passed over {line}", err=True)
    answers, others = part(files)
    reading = read_files(others)
    if reading.empty and not answers:
        raise NotFound(
            f"No stacks in {counted(len(files), 'file')}.",
            fix="Name the folder that `incident-console stacks take` printed, or py-spy's output.",
        )
    look = look_into(answers, reading)
    counts = counts_beside(look)
    comparison = compare(reading.samples, reading.missing, counts=counts, states=reading.states)
    document = told(comparison, reading) | {"ras": ras_told(look) if answers else None}
    typer.echo(orjson.dumps(document) if as_json else _text(document, alone=reading.empty))


def _text(document: Mapping[str, Any], *, alone: bool) -> str:
    """*alone*: there are answers of NCCL, and no stacks."""
    parts = [] if alone else [comparison_text(document)]
    return "\n\n".join([*parts, ras_text(document["ras"])] if document["ras"] else parts)
