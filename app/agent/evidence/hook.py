"""Evidence before a restart: for a liveness probe, preStop or ExecStopPost, within a hard limit.

What is cheap comes first, and the stacks, which may wait for a process, beside it: neither can
keep the other from being saved.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread, Timer

from app.agent.evidence.facts import host_facts
from app.agent.kept.files import AgentFiles
from app.agent.kept.state import QUOTA_BYTES
from app.agent.processes.table import ProcessTable
from app.agent.stacks.take import take_stacks
from app.agent.touching.bounded import KILL_SECONDS, Tell, run_bounded, seconds_since_start
from app.agent.touching.holds import Holds
from app.domain.counting import counted
from app.errors import ConsoleError
from app.protocol.messages import MAX_PROCESSES, FileTaken, Refusal, Server, StacksRequest

SAMPLES = 2
INTERVAL_SECONDS = 2.0
_TO_KEEP_SECONDS = 1.5  # before the end: py-spy is stopped, so that what it read can be kept
_RANKS = ("scheduler", "worker")


def take_evidence(state_dir: Path, tell: Tell, *, deadline_seconds: float) -> None:
    """Save facts, log tails and stacks of all servers here; *tell* hears what was saved.

    Counts from the start of this process, and is over in time whatever hangs.
    """
    seconds = deadline_seconds - seconds_since_start()
    work = partial(_save, state_dir, seconds - KILL_SECONDS - _TO_KEEP_SECONDS)
    if not run_bounded(work, tell, seconds=seconds):
        tell(f"Cut off at the limit of {deadline_seconds:g} s; what is named above is saved.")


def _save(state_dir: Path, seconds: float, tell: Tell) -> None:
    """What the child does; stacks end after *seconds* with what there is."""
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = AgentFiles.open(state_dir / "files", quota_bytes=QUOTA_BYTES)
    except OSError as error:
        tell(f"Nothing can be saved in {state_dir}: {error.strerror}.")
        return
    cancel = Event()
    Timer(max(0.0, seconds), cancel.set).start()
    table = ProcessTable()
    told = table.processes()
    servers = told.servers
    tell(f"Servers here: {', '.join(server.name for server in servers) or 'none'}.")
    if told.cut:
        tell(told.cut)
    steps: list[Callable[[], None]] = [
        partial(_facts, table, files, tell),
        partial(_stacks, servers, table, files, cancel, tell),
    ]
    threads = [Thread(target=_told, args=(step, tell)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _told(step: Callable[[], None], tell: Tell) -> None:
    try:
        step()
    except ConsoleError as error:
        tell(error.detail)


def _facts(table: ProcessTable, files: AgentFiles, tell: Tell) -> None:
    answer = host_facts(table=table, files=files)
    kept = files.keep(
        answer.model_dump_json(indent=1).encode(), name="host-facts.json", kind="host facts"
    )
    _tell_all([kept, *answer.files], answer.refused, tell)


def _stacks(
    servers: list[Server], table: ProcessTable, files: AgentFiles, cancel: Event, tell: Tell
) -> None:
    """All ranks first: where there are very many processes, the others are left out."""
    processes = [process for server in servers for process in server.processes]
    processes.sort(key=lambda process: process.role not in _RANKS)
    if not processes:
        return
    request = StacksRequest(
        process_ids=[process.id for process in processes[:MAX_PROCESSES]],
        samples=SAMPLES,
        interval_seconds=INTERVAL_SECONDS,
    )
    answer = take_stacks(request, table=table, holds=Holds(), files=files, cancel=cancel)
    _tell_all([sample.file for sample in answer.done], answer.refused, tell)


def _tell_all(files: list[FileTaken], refused: list[Refusal], tell: Tell) -> None:
    for file in files:
        tell(f"saved {file.name}, {counted(file.size_bytes, 'byte')}, {file.id}")
    for refusal in refused:
        tell(f"refused {refusal.process_id or ''}: {refusal.reason} {refusal.fix or ''}".rstrip())
