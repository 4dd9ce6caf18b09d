"""NCCL's own view of a server's communicators: its RAS, asked twice some seconds apart.

Equal counts in both readings beside a mismatch between ranks is what a hang looks like; one
reading alone cannot tell slow from stuck.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from app.agent.evidence.ras_address import check_listens, ras_port
from app.agent.evidence.ras_client import Reading, read_status
from app.agent.evidence.redacting import FINGERPRINT
from app.agent.kept.files import AgentFiles
from app.agent.processes.asked_for import servers_asked_for
from app.agent.processes.proc import pid_of
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.agent.touching.net_namespace import connect
from app.domain.redaction import redact_body
from app.errors import Conflict, ConsoleError
from app.protocol.messages import MAX_INTERVAL_SECONDS, FileTaken, RasAnswer, Refusal, Server

READINGS = 2
_MOST_SERVERS_AT_ONCE = 8


@dataclass(slots=True)
class _Asked:
    """What came of one server."""

    files: list[FileTaken] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


def read_ras(
    *,
    table: ProcessTable,
    files: AgentFiles,
    holds: Holds,
    process_id: str | None = None,
    interval_seconds: float = 10.0,
) -> RasAnswer:
    """Two readings of the server of *process_id*, or of every server here.

    Raises NotFound for a process that is none of a server. What one server refuses does not
    keep another from answering.
    """
    at = datetime.now(UTC)
    servers, not_asked = _servers(table, process_id)
    ask = partial(
        _ask, files=files, holds=holds, interval=min(interval_seconds, MAX_INTERVAL_SECONDS)
    )
    with ThreadPoolExecutor(_MOST_SERVERS_AT_ONCE) as threads:
        asked = list(threads.map(ask, servers))
    readings = [file for one in asked for file in one.files]
    refused = [*(refusal for one in asked for refusal in one.refused), *not_asked]
    says = _says(len(servers), len(readings), interval_seconds)
    return RasAnswer(at=at, readings=readings, says=says, refused=refused)


def _servers(table: ProcessTable, process_id: str | None) -> tuple[list[Server], list[Refusal]]:
    """That of *process_id*, which must be there, or all that are told."""
    if process_id is not None:
        return [table.server_of(process_id)], []
    return servers_asked_for(table, None)


def _ask(server: Server, *, files: AgentFiles, holds: Holds, interval: float) -> _Asked:
    """Both readings, or the first and why there is no second."""
    asked = _Asked()
    try:
        for number in range(1, READINGS + 1):
            if number > 1:
                time.sleep(interval)
            asked.files.append(_kept(server, number, _reading(server, holds), files))
    except ConsoleError as error:
        asked.refused.append(_refusal(server, error))
    return asked


def _reading(server: Server, holds: Holds) -> Reading:
    for process in server.processes:
        if holder := holds.holder(process.pid):
            # Whoever is paused looks unresponsive to NCCL: the answer would accuse our own tool.
            raise Conflict(
                f"{holder} is on process {process.pid} of this server.",
                fix="Wait until it is done, then ask again.",
            )
    port = ras_port(server)
    check_listens(server, port)
    return read_status(partial(connect, pid_of(server.id), port))


def _kept(server: Server, number: int, reading: Reading, files: AgentFiles) -> FileTaken:
    data, masked = redact_body(reading.data, fingerprint=FINGERPRINT)
    ending = {"json": "json", "text": "txt"}[reading.form]
    cut = "-cut" if reading.cut else ""
    return files.keep(
        data,
        name=f"nccl-ras-{pid_of(server.id)}-{number}{cut}.{ending}",
        kind="nccl ras",
        process_id=server.id,
        redacted=masked,
    )


def _refusal(server: Server, error: ConsoleError) -> Refusal:
    return Refusal(
        process_id=server.id,
        kind="busy" if isinstance(error, Conflict) else "nccl ras",
        reason=f"{server.name}: {error.what} {error.why or ''}".strip(),
        fix=error.fix,
        command=error.command,
    )


def _says(servers: int, readings: int, interval_seconds: float) -> str:
    if not servers:
        return "No server runs here."
    if not readings:
        return "NCCL gave no answer."
    whole = READINGS * servers
    apart = f"{interval_seconds:g} s apart"
    if readings == whole:
        return f"NCCL answered {readings} times of {whole}, {apart}."
    return f"NCCL answered {readings} times of {whole}: what is missing is not known."
