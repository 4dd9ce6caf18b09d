"""What can be captured right now, and the one fix for each thing that cannot.

Nothing is done to a server: /proc is read, and py-spy is tried on a child of our own. What was
not tried and cannot be told is unknown, never ready.
"""

import platform
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.agent.coredump.gate import tracker_environments
from app.agent.kept.files import AgentFiles
from app.agent.processes.proc import PROC, pid_of
from app.agent.processes.table import ProcessTable
from app.agent.readiness.preflight_coredump import coredump_check
from app.agent.readiness.preflight_host import host_checks
from app.agent.readiness.preflight_nccl import environments, ras_check, recorder_check
from app.agent.readiness.preflight_server import crash_dump_check, grace_check, log_check
from app.agent.readiness.preflight_stacks import stack_checks
from app.agent.readiness.rights import Rights, rights
from app.agent.readiness.server_facts import server_facts
from app.agent.readiness.supervision import supervision
from app.domain.restart import Restart, restart
from app.protocol.looked_at import looked_at, title_of
from app.protocol.messages import Check, Loss, Preflight, Process, Readiness, RestartCard, Server

RANKS = ("scheduler", "worker")


def preflight(
    *,
    table: ProcessTable,
    files: AgentFiles,
    process_ids: Sequence[str] | None = None,
    root: Path = PROC,
) -> Preflight:
    """The host, then each process of each server, or those of *process_ids* only.

    Raises NotFound for an id that is no process of a server. Only what concerns a whole server,
    such as its crash dump, is asked of its root.
    """
    now = datetime.now(UTC)
    if platform.system() != "Linux":
        absent = Check(capability="stacks", ready=None, says="absent: Linux only")
        return Preflight(at=now, host=[absent], processes=[])
    may = rights()
    wanted = None if process_ids is None else {table.find(one).id for one in process_ids}
    servers, left_out = _servers(table, wanted)
    host = host_checks(may, files, now)
    processes, cards = [], []
    for server in servers:
        own, card = _server_checks(server, root)
        processes += list(_processes(server, may, own, wanted, root))
        cards.append(card)
    checks = [*host, *(check for one in processes for check in one.checks)]
    return Preflight(
        at=now,
        host=host,
        processes=processes,
        restarts=cards,
        score=score(checks),
        servers_left_out=left_out,
    )


def score(checks: Iterable[Check]) -> float | None:
    """Ready ones of those that could be told; None where none could."""
    known = [check.ready for check in checks if check.ready is not None]
    return round(sum(known) / len(known), 3) if known else None


def _servers(table: ProcessTable, wanted: set[str] | None) -> tuple[list[Server], int]:
    """Those of *wanted*, of None all that are told, and how many more are not."""
    if wanted is None:
        told = table.processes()
        return told.servers, told.servers_left_out
    found = {(server := table.server_of(one)).id: server for one in wanted}
    return list(found.values()), 0


def _server_checks(server: Server, root: Path) -> tuple[list[Check], RestartCard]:
    """What is asked of the root alone, and the card "if you must restart"."""
    supervised = supervision(pid_of(server.id), root)
    facts = server_facts(server, grace_seconds=supervised.seconds, root=root)
    checks = [
        log_check(server, root),
        crash_dump_check(facts),
        grace_check(facts, supervised),
    ]
    return checks, _card(server, restart(facts))


def process_checks(process: Process, may: Rights, root: Path = PROC) -> list[Check]:
    """What can be captured of a process that is part of no server: all that is asked of a rank."""
    alone = Server(id=process.id, engine="sglang", name="", processes=[process])
    return [*stack_checks(process, may, root), *_RankChecks(alone, root).of(process)]


class _RankChecks:
    """What is asked of the ranks of a server; what is the same for all of them is read once."""

    def __init__(self, server: Server, root: Path) -> None:
        self._server, self._root = server, root
        self._trackers = tracker_environments(one.pid for one in server.processes)
        self._told = environments(server.processes, root)
        self._ras = ras_check(server, root)

    def of(self, process: Process) -> list[Check]:
        return [
            coredump_check(process, self._server.processes[0], self._trackers),
            recorder_check(process, self._told, self._root),
            self._ras,
        ]


def _processes(
    server: Server, may: Rights, own: list[Check], wanted: set[str] | None, root: Path
) -> Iterator[Readiness]:
    of_ranks = _RankChecks(server, root)
    for process in looked_at(server) if wanted is None else server.processes:
        is_root = process.id == server.id
        if wanted is not None and process.id not in wanted:
            continue
        checks = stack_checks(process, may, root)
        checks += of_ranks.of(process) if process.role in RANKS else []
        checks += own if is_root else []
        yield Readiness(process_id=process.id, title=title_of(process), checks=checks)


def _card(server: Server, told: Restart) -> RestartCard:
    losses = [
        Loss(
            how=ending.how,
            saves=list(ending.saves),
            loses=list(ending.loses),
            unknown=list(ending.unknown),
            command=ending.command,
        )
        for ending in told.endings
    ]
    return RestartCard(server_id=server.id, name=server.name, advice=told.advice, losses=losses)
