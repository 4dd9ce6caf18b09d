"""``incident-console coredump inspect``."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.summary_text import printable, table
from app.clients.coredumps import inspect_file
from app.clients.opening import as_text
from app.domain.coredump.document import unreadable
from app.errors import NotFound, Rejected

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_MOST_SHOWN = 8

Dump = Annotated[Path, typer.Argument(metavar="PATH", help="A CUDA coredump, also compressed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Everything as one JSON document.")]


@app.command("inspect")
def inspect(path: Dump, *, as_json: AsJson = False) -> None:
    """What the GPUs of a process were doing: kernels, SMs, exceptions, by its CUDA coredump.

    Needs no GPU and no cuda-gdb, and changes nothing. The file is read in a process that can do
    nothing else. Exit status 0 only for a dump that was read; else the reason is given.
    """
    try:
        document = inspect_file(path)
    except (NotFound, Rejected) as error:
        if as_json:
            _write(unreadable(as_text(path), "not readable", error.detail, None))
        raise
    if as_json:
        _write(document)
    elif document["complete"]:
        typer.echo("\n".join(_lines(document)))
    if not document["complete"]:
        raise Rejected(printable(f"{document['file']}: {document['note']}"))


def _write(document: Mapping[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(document) + b"\n")


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield printable(document["note"])
    yield ""
    yield from _devices(document["devices"])
    yield from _exceptions(document["exceptions"])
    yield from _kernels(document["kernels"])
    if document["fingerprint"]:
        yield f"Fingerprint: {document['fingerprint']}"
    for problem in document["problems"]:
        yield printable(f"Not as it should be: {problem}")
    yield "To look further, in a folder that can be thrown away:"
    for command in document["commands"]:
        yield printable(f"  {command}")


def _devices(devices: list[Mapping[str, Any]]) -> Iterator[str]:
    rows: list[tuple[Any, ...]] = [("GPU", "name", "arch", "PCI bus", "SMs", "with work")]
    rows += [
        (one["index"], one["name"], one["arch"], one["pci_bus"], one["sms"], one["sms_with_work"])
        for one in devices
    ]
    yield from table(rows)


def _exceptions(exceptions: list[Mapping[str, Any]]) -> Iterator[str]:
    if not exceptions:
        return
    yield "Exceptions"
    rows: list[tuple[Any, ...]] = [("GPU", "SM", "exception", "PC", "threads", "kernel")]
    rows += [
        (
            one["device"],
            one["sm"],
            f"{one['name']} ({one['code']})",
            one["pc"],
            one["threads"],
            one["kernel"] or one["function"],
        )
        for one in exceptions[:_MOST_SHOWN]
    ]
    yield from table(rows)
    yield from _more(exceptions)


def _kernels(kernels: list[Mapping[str, Any]]) -> Iterator[str]:
    yield "Kernels"
    rows: list[tuple[Any, ...]] = [("GPU", "SMs", "warps", "grid", "block", "kernel")]
    rows += [
        (
            one["device"],
            len(one["sms"]),
            one["warps"],
            ",".join(map(str, one["grid"])),
            ",".join(map(str, one["block"])),
            one["name"],
        )
        for one in kernels[:_MOST_SHOWN]
    ]
    yield from table(rows)
    yield from _more(kernels)


def _more(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    if len(rows) > _MOST_SHOWN:
        yield f"  and {len(rows) - _MOST_SHOWN} more; --json has all"
