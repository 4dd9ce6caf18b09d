"""``incident-console dump summarize``."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.dump_files import documents, files_named
from app.cli.dump_text import dump_text
from app.cli.fingerprint_key import fingerprint_key
from app.cli.summary_text import printable
from app.clients.dumps import Reading
from app.domain.counting import counted
from app.domain.dumps.redacted import Tier
from app.domain.dumps.several import SharedIdentifiers
from app.errors import Rejected

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH…", help="Dumps, JSON lines, payloads or request logs; folders of them."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Everything as one JSON document.")]
Most = Annotated[int, typer.Option("--max-requests", min=0, help="How many requests to list.")]
AtTier = Annotated[
    Tier, typer.Option("--tier", help="T0: shape alone. T1: text without secrets. T2: as it is.")
]


@app.command("summarize")
def summarize(
    paths: Paths, *, as_json: AsJson = False, max_requests: Most = 20, tier: AtTier = "T0"
) -> None:
    """What is in a dump of SGLang, of any version, and which requests to look at first.

    Nothing in a file is ever run: it is read in a process that can do nothing else. Exit status 1
    when a file could not be read as a whole; what could be salvaged of it is shown.
    """
    shared = SharedIdentifiers()
    reading = Reading(key=fingerprint_key())
    found: list[Mapping[str, Any]] = []
    files = files_named(paths)
    for path in files:
        for document in documents(
            path,
            reading,
            tier=tier,
            max_requests=max_requests,
            take=shared.take if len(files) > 1 else None,
        ):
            shared.next_file(document["file"])
            found.append(document)
    told = [shared.added_to(document) for document in found]
    _print(told, shared, as_json=as_json)
    _fail_for(told)


def _print(told: Sequence[Mapping[str, Any]], shared: SharedIdentifiers, *, as_json: bool) -> None:
    if not as_json:
        typer.echo("\n\n".join(dump_text(document) for document in told))
        return
    whole = told[0] if len(told) == 1 else {"files": told, "shared_rids": shared.in_several()}
    sys.stdout.buffer.write(orjson.dumps(whole) + b"\n")


def _fail_for(told: Sequence[Mapping[str, Any]]) -> None:
    unread = [document for document in told if document["kind"] == "unreadable"]
    if not unread:
        return
    first = unread[0]
    others = (
        f" {counted(len(unread), 'file')} of {len(told)} could not be read." if unread[1:] else ""
    )
    raise Rejected(printable(f"{first['file']}: {first['problems'][0]}{others}"))
