"""``incident-console stacks take``."""

import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Annotated

import orjson
import typer

from app.agent.processes.named import NamedProcesses
from app.agent.processes.table import ProcessTable
from app.agent.stacks.take import take_stacks
from app.agent.touching.holds import Holds
from app.cli.stacks_folder import StacksFolder
from app.domain.pyspy_errors import GONE
from app.errors import Conflict, Interrupted, NotFound, Rejected
from app.protocol.messages import (
    MAX_INTERVAL_SECONDS,
    MAX_PROCESSES,
    MAX_SAMPLES,
    Process,
    Refusal,
    StackSample,
    StacksAnswer,
    StacksRequest,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)
RANKED = ("scheduler", "worker")

Pids = Annotated[
    list[int] | None,
    typer.Option("--pid", min=1, help="A process; again for more. Without: all ranks."),
]
Samples = Annotated[int, typer.Option(min=1, max=MAX_SAMPLES, help="Of each process.")]
IntervalSeconds = Annotated[
    float, typer.Option(min=0.5, max=MAX_INTERVAL_SECONDS, help="From one sample to the next.")
]
Native = Annotated[bool, typer.Option("--native", help="With the calls inside C libraries.")]
Out = Annotated[Path | None, typer.Option(help="A new folder for the files.")]
AsJson = Annotated[bool, typer.Option("--json", help="What was taken as one JSON document.")]


@app.command("take")
def take(
    *,
    pid: Pids = None,
    samples: Samples = 3,
    interval_seconds: IntervalSeconds = 5.0,
    native: Native = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Read the stacks of running processes with py-spy; prints the folder.

    Pauses each process for a tenth of a second, a native one for up to half a second. Without
    --pid: all ranks of the one server that runs here. Exit status 0 once there are stacks of
    some process; what was refused stands beside them with its reason and its fix.
    """
    if sys.platform != "linux":
        raise Rejected("Stacks are taken on Linux only.")
    processes = _chosen(pid)
    asked_at = datetime.now(UTC)
    folder = StacksFolder(out or Path(f"stacks-{asked_at:%Y%m%dT%H%M%SZ}"), _progress)
    cancel = Event()
    before = signal.signal(signal.SIGINT, lambda *_: cancel.set())  # what is taken is kept
    try:
        answer = _answer(processes, samples, interval_seconds, folder, cancel, native=native)
    finally:
        signal.signal(signal.SIGINT, before)
    folder.finish(answer, processes.processes)
    _tell(answer, folder.path, as_json=as_json)
    if cancel.is_set():
        raise Interrupted("Stopped by hand; what was taken is kept.")
    if not answer.done:
        raise NotFound("No process gave its stacks.", fix="The reasons stand above.")


def _chosen(pids: Sequence[int] | None) -> NamedProcesses:
    """The processes named, or all ranks of the one server here; raises where that is unclear."""
    table = ProcessTable()
    named = list(pids or _ranks_of_the_one_server(table))
    if len(named) > MAX_PROCESSES:
        raise Rejected(f"At most {MAX_PROCESSES} processes at once.")
    return NamedProcesses(named, table)


def _ranks_of_the_one_server(table: ProcessTable) -> list[int]:
    told = table.processes()
    servers = told.servers
    if not servers:
        raise NotFound(
            "No SGLang or vLLM server runs here.",
            fix="Name the processes with --pid, or look from where the server's are seen.",
        )
    if len(servers) > 1:
        lines = "\n".join(f"  {one.name}: {_flags(_ranks(one.processes))}" for one in servers)
        count = len(servers) + told.servers_left_out
        more = f"\n  {told.cut}" if told.cut else ""
        raise Conflict(f"{count} servers run here; name the ranks of one:\n{lines}{more}")
    return _ranks(servers[0].processes) or [servers[0].processes[0].pid]


def _ranks(processes: Sequence[Process]) -> list[int]:
    return [process.pid for process in processes if process.role in RANKED]


def _flags(pids: Sequence[int]) -> str:
    return " ".join(f"--pid {pid}" for pid in pids) or "no rank yet"


def _answer(
    named: NamedProcesses,
    samples: int,
    interval_seconds: float,
    folder: StacksFolder,
    cancel: Event,
    *,
    native: bool,
) -> StacksAnswer:
    gone = [
        Refusal(kind=GONE.kind, reason=f"There is no process {pid} here.", fix=GONE.fix)
        for pid in named.gone
    ]
    if not named.processes:
        return StacksAnswer(matched=[], done=[], refused=gone)
    request = StacksRequest(
        process_ids=[process.id for process in named.processes],
        samples=samples,
        interval_seconds=interval_seconds,
        mode="native" if native else "plain",
    )
    answer = take_stacks(request, table=named, holds=Holds(), files=folder, cancel=cancel)
    return answer.model_copy(update={"refused": [*answer.refused, *gone]})


def _progress(line: str) -> None:
    typer.echo(line, err=True)


def _tell(answer: StacksAnswer, folder: Path, *, as_json: bool) -> None:
    """The folder, or one JSON document, on stdout; refusals and oddities on stderr."""
    for refusal in answer.refused:
        who = refusal.rank or refusal.process_id or ""
        _progress(f"refused {who}: {refusal.reason} {refusal.fix or ''}".rstrip())
        if refusal.command:
            _progress(f"  {refusal.command}")
    for sample in answer.done:
        for note in [*_torn(sample), *sample.notes]:
            _progress(f"{sample.file.name}: {note}")
    if as_json:
        document = {**answer.model_dump(mode="json"), "folder": str(folder)}
        sys.stdout.buffer.write(orjson.dumps(document) + b"\n")
        return
    typer.echo(str(folder))


def _torn(sample: StackSample) -> list[str]:
    return [] if sample.exact else ["Taken in motion: its calls may not belong together."]
