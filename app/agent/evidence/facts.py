"""What the host itself says: facts of one sentence each, and the files behind them.

Nothing here stops a process or writes anywhere but into the agent's own folder. What cannot be
read is "unknown", never good.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.agent.evidence import cgroup_memory
from app.agent.evidence.clock import clock_fact
from app.agent.evidence.host_figures import booted_at, host_figures
from app.agent.evidence.kernel_facts import kernel_facts, log_text
from app.agent.evidence.kernel_log import KernelLog, read_kernel_log
from app.agent.evidence.pressure import pressure_facts
from app.agent.evidence.process_facts import process_facts
from app.agent.evidence.redacting import safe_log
from app.agent.evidence.server_folders import ServerFolder, server_folders
from app.agent.evidence.server_logs import take_log_tails
from app.agent.evidence.sizes import size_text
from app.agent.kept.files import AgentFiles
from app.agent.processes.asked_for import servers_asked_for
from app.agent.processes.proc import PROC, pid_of
from app.agent.processes.table import ProcessTable
from app.agent.touching.rooted import open_folder
from app.errors import NoSpace
from app.protocol.messages import Fact, FileTaken, HostFacts, Refusal, Server

MAX_SERVERS = 16  # whose processes are told one by one
_LITTLE_SPACE_BYTES = 10 * 1024**3  # a light coredump of eight GPUs takes less
_VERY_LITTLE_SPACE_BYTES = 1024**3


def host_facts(
    *, table: ProcessTable, files: AgentFiles, process_ids: Sequence[str] | None = None
) -> HostFacts:
    """The facts of the host and of the servers of *process_ids*, or of every server here.

    Processes that are gone are refused by name, and the rest is told.
    """
    at = datetime.now(UTC)
    servers, refused = servers_asked_for(table, process_ids)
    if len(servers) > MAX_SERVERS:
        reason = f"Of {len(servers)} servers the first {MAX_SERVERS} are told one by one."
        refused.append(Refusal(kind="too many", reason=reason, fix="Ask for each by itself."))
        servers = servers[:MAX_SERVERS]
    log = read_kernel_log()
    facts = [*_of_host(at, log), *_disk(files, servers), *_of_servers(servers)]
    taken, more = _files(servers, log, files)
    return HostFacts(at=at, facts=facts, files=taken, refused=[*refused, *more])


def _of_host(at: datetime, log: KernelLog | None) -> Iterator[Fact]:
    yield clock_fact(at)
    yield from host_figures()
    yield from pressure_facts(PROC)
    yield from kernel_facts(log, booted_at())


def _of_servers(servers: Sequence[Server]) -> Iterator[Fact]:
    for server in servers:
        yield from cgroup_memory.memory_facts(pid_of(server.id), server.name)
        for process in server.processes:
            yield from process_facts(process)


def _disk(files: AgentFiles, servers: Sequence[Server]) -> Iterator[Fact]:
    """Free space where we write and where the servers dump to."""
    yield _free(files.folder, str(files.folder), "the agent keeps its files")
    for server in servers:
        for folder in server_folders(server):
            yield _free_for_dumps(server, folder)


def _free_for_dumps(server: Server, folder: ServerFolder) -> Fact:
    try:
        opened = open_folder(folder.pid, folder.path)
    except OSError as error:
        says = f"The free space where {server.name} dumps is not known: {error.strerror}."
        return Fact(topic="disk", says=says, level="unknown", source=folder.shown)
    try:
        return _free(opened, folder.shown, f"{server.name} dumps")
    finally:
        os.close(opened)


def _free(folder: Path | int, path: str, what: str) -> Fact:
    usage = shutil.disk_usage(folder)
    low = usage.free < _LITTLE_SPACE_BYTES
    level = "bad" if usage.free < _VERY_LITTLE_SPACE_BYTES else "warn" if low else "good"
    says = f"{size_text(usage.free)} of {size_text(usage.total)} are free where {what}."
    return Fact(topic="disk", says=says, level=level, source=path)


def _files(
    servers: Sequence[Server], log: KernelLog | None, files: AgentFiles
) -> tuple[list[FileTaken], list[Refusal]]:
    """The kernel's log and the servers' logs; a full disk is told, and facts stay."""
    taken: list[FileTaken] = []
    refused: list[Refusal] = []
    try:
        if log is not None:
            text, masked = safe_log(log_text(log))
            taken.append(
                files.keep(text.encode(), name="kernel.log", kind="kernel log", redacted=masked)
            )
        for server in servers:
            tails, more = take_log_tails(server, files=files)
            taken += tails
            refused += more
    except NoSpace as error:
        refused.append(Refusal(kind="no space", reason=error.what, fix=error.fix))
    return taken, refused
