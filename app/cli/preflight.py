"""``incident-console preflight``: what can be captured on this host, and the fix for the rest."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Annotated

import orjson
import typer

from app.agent.kept.files import AgentFiles
from app.agent.kept.state import QUOTA_BYTES
from app.agent.processes.named import NamedProcesses
from app.agent.processes.table import ProcessTable
from app.agent.readiness.preflight import preflight, process_checks, score
from app.agent.readiness.rights import rights
from app.cli.agent_state import StateDir, state_folder
from app.cli.summary_text import printable
from app.errors import NotFound
from app.protocol.looked_at import title_of
from app.protocol.messages import Check, Preflight, Readiness, RestartCard, servers_cut

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_STATES = {True: "ready", False: "NOT READY", None: "unknown"}
_INDENT = 14

Pids = Annotated[
    list[int] | None,
    typer.Option("--pid", min=1, help="A process; again for more. Without: all servers here."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]


@app.command("preflight")
def print_preflight(
    *, pid: Pids = None, state_dir: StateDir = None, as_json: AsJson = False
) -> None:
    """Print what can be captured right now, and one fix for each thing that cannot.

    Nothing is done to a server: /proc is read, and py-spy is tried on a process of our own. Exit
    status 0 once that was looked at, whatever is missing, and also where no server runs; 1 where
    a --pid has no process.
    """
    found = _looked_at(pid or (), _files(state_dir))
    if as_json:
        document = found.model_dump(mode="json")
        sys.stdout.buffer.write(orjson.dumps(document) + b"\n")
        return
    for line in preflight_text(found, shutil.get_terminal_size().columns):
        typer.echo(line)


def _files(state_dir: StateDir) -> AgentFiles:
    """Those of the agent, or of where it would make its folder; only asked for room."""
    folder = state_folder(state_dir).absolute() / "files"
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    return AgentFiles(there, QUOTA_BYTES)


def _looked_at(pids: Sequence[int], files: AgentFiles) -> Preflight:
    table = ProcessTable()
    if not pids:
        return preflight(table=table, files=files)
    named = NamedProcesses(pids, table)
    if named.gone:
        raise NotFound(
            f"There is no process {', '.join(map(str, named.gone))} here.",
            fix="Look at the processes without --pid, or from the namespace of the server.",
        )
    known = {process.id for server in table.processes().servers for process in server.processes}
    found = preflight(
        table=table, files=files, process_ids=[one.id for one in named.processes if one.id in known]
    )
    others = [one for one in named.processes if one.id not in known]
    return _with(
        found,
        [
            Readiness(process_id=one.id, title=title_of(one), checks=process_checks(one, rights()))
            for one in others
        ],
    )


def _with(found: Preflight, others: list[Readiness]) -> Preflight:
    processes = [*found.processes, *others]
    checks = [*found.host, *(check for one in processes for check in one.checks)]
    return found.model_copy(update={"processes": processes, "score": score(checks)})


def preflight_text(found: Preflight, columns: int) -> Iterator[str]:
    """*found* as lines of at most *columns*; commands are never broken."""
    yield f"Preflight at {found.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC: {_share(found)}"
    yield from _section("This host", found.host, columns)
    for process in found.processes:
        yield from _section(process.title, process.checks, columns)
    if not found.processes:
        yield "\nNo SGLang or vLLM server runs here."
    if cut := servers_cut(found.servers_left_out):
        yield from _wrapped(f"\n{cut}", columns)
    for card in found.restarts:
        yield from _card(card, columns)


def _share(found: Preflight) -> str:
    checks = [*found.host, *(check for one in found.processes for check in one.checks)]
    ready = sum(check.ready is True for check in checks)
    unknown = sum(check.ready is None for check in checks)
    said = f"{ready} of {len(checks) - unknown} ready"
    return f"{said}, {unknown} unknown" if unknown else said


def _section(title: str, checks: Iterable[Check], columns: int) -> Iterator[str]:
    yield f"\n{printable(title)}"
    for check in checks:
        head = f"  {_STATES[check.ready]:<9}   {check.capability}: "
        yield from _wrapped(f"{head}{printable(check.says)}", columns)
        if check.fix:
            yield from _wrapped(f"{'':{_INDENT}}fix: {printable(check.fix)}", columns)
        if check.command:
            yield f"{'':{_INDENT}}$ {printable(check.command)}"


def _card(card: RestartCard, columns: int) -> Iterator[str]:
    yield f"\nIf you must restart {printable(card.name)}"
    yield from _wrapped(f"  {printable(card.advice)}", columns)
    for loss in card.losses:
        yield f"  {loss.how}   $ {printable(loss.command)}   (never sent by us)"
        told = (("saves", loss.saves), ("loses", loss.loses), ("unknown", loss.unknown))
        for word, lines in told:
            for line in lines:
                yield from _wrapped(f"    {word:<8}  {printable(line)}", columns)


def _wrapped(line: str, columns: int) -> list[str]:
    return textwrap.wrap(
        line,
        max(columns, 40),
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
