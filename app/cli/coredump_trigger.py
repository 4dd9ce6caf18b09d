"""``incident-console coredump trigger``."""

import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from app.agent.coredump.coredumps import Coredumps
from app.agent.coredump.endings import Limits
from app.agent.coredump.gate import dump_turn
from app.agent.coredump.records import FINAL
from app.agent.kept.files import AgentFiles
from app.agent.kept.state import QUOTA_BYTES
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.cli.agent_state import StateDir, state_folder
from app.cli.summary_text import printable
from app.errors import Conflict, Interrupted, NotFound, Rejected
from app.protocol.messages import Coredump, CoredumpRequest, Process

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_LOOK_SECONDS = 0.2

Pid = Annotated[int, typer.Option(min=1, help="The process whose GPUs are dumped: a scheduler.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for the name of the host.")]
AsJson = Annotated[bool, typer.Option("--json", help="How it ended as one JSON document.")]


@app.command("trigger")
def trigger(
    *, pid: Pid, yes: Yes = False, state_dir: StateDir = None, as_json: AsJson = False
) -> None:
    """Ask for a CUDA coredump of one process and wait for its end; prints the path.

    Intrusive: the GPUs of the process halt while the driver writes, its peers wait for them, and
    their watchdogs may fire. Exit status 0 only for a complete dump. Ctrl-C ends the waiting, not
    the dump: the next call, or the agent, goes on watching it.
    """
    if sys.platform != "linux":
        raise Rejected("absent: Linux only")
    table = ProcessTable()
    process = _named(pid, table)
    host = socket.gethostname()
    typed = host if yes else _typed(process, host)
    coredumps = _opened(state_folder(state_dir).absolute(), table, host)
    try:
        _take_up(coredumps)
        asked = coredumps.trigger(CoredumpRequest(process_id=process.id, confirm=typed))
        _tell(_followed(coredumps, asked), as_json=as_json)
    except KeyboardInterrupt as error:
        raise Interrupted(
            "No longer watched; the driver goes on writing.",
            fix="Do not end the process until its dump is whole.",
        ) from error
    finally:
        coredumps.close()


def _named(pid: int, table: ProcessTable) -> Process:
    told = table.processes()
    for server in told.servers:
        for process in server.processes:
            if process.pid == pid:
                return process
    raise NotFound(
        f"Process {pid} is no part of a server on this host{' that is told' if told.cut else ''}.",
        why=told.cut,
        fix="Name a rank of an SGLang or vLLM server, by the pid that it has here.",
        command="incident-console preflight",
    )


def _typed(process: Process, host: str) -> str:
    """What a person types for the name of this host."""
    who = f"{printable(process.title)} (pid {process.pid})"
    typer.echo(f"This halts the GPUs of {who} while its driver writes a dump.", err=True)
    typer.echo("Its peers wait meanwhile; their watchdogs may fire.", err=True)
    typer.echo(f"Type the name of this host to go on ({host}): ", err=True, nl=False)
    return sys.stdin.readline().strip()  # click's own prompt writes to stdout as well


def _opened(folder: Path, table: ProcessTable, host: str) -> Coredumps:
    """The coredumps of this user's agent folder, shared with an agent that runs on it."""
    files = AgentFiles.open(folder / "files", quota_bytes=QUOTA_BYTES)
    return Coredumps(
        table=table, holds=Holds(), files=files, folder=folder / "coredumps", host=host
    )


def _take_up(coredumps: Coredumps) -> None:
    """Watch to its end what an earlier call began, unless an agent is doing so."""
    with suppress(Conflict):
        dump_turn(Limits()).release()
        coredumps.resume()
        for earlier in coredumps.all():
            if earlier.state not in FINAL:
                typer.echo(f"A dump of process {earlier.process_id} is under way.", err=True)
                _followed(coredumps, earlier)


def _followed(coredumps: Coredumps, coredump: Coredump) -> Coredump:
    """*coredump* once it is final; what is said of it meanwhile goes to stderr."""
    said = ""
    while True:
        now = coredumps.get(coredump.id)
        if now.says != said:
            said = now.says
            typer.echo(f"{now.state}: {printable(said)}", err=True)
        if now.state in FINAL:
            return now
        time.sleep(_LOOK_SECONDS)


def _tell(coredump: Coredump, *, as_json: bool) -> None:
    """The path or one JSON document on stdout; raises Conflict where it is not complete."""
    for note in coredump.notes:
        typer.echo(printable(note), err=True)
    if as_json:
        sys.stdout.write(f"{coredump.model_dump_json()}\n")
    elif coredump.path:
        typer.echo(printable(coredump.path))
    if coredump.state != "complete":
        raise Conflict(
            f"No complete coredump: {coredump.state}.", fix=coredump.fix, command=coredump.command
        )
