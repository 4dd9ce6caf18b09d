"""NCCL's answers of a diagnostic, read back from its artifacts, with the ranks they may be of."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from app.domain.endpoints import MIB
from app.domain.ras.look import RasLook, Unread, look_at
from app.domain.ras.ranks import Known
from app.domain.ras.reading import read_status
from app.domain.ras.watch import Taken
from app.domain.titles import RankNumbers
from app.errors import ConsoleError
from app.jobs.looking import Look
from app.protocol.messages import Process, Rank
from app.store.database import reading
from app.store.evidence import get_artifact
from app.store.hosts import processes_of
from app.store.tables import DiagnosticItem

MOST_ANSWERS = 64
_MOST_BYTES = 8 * MIB  # of one answer; an agent keeps four

Names = Mapping[tuple[int, str], str]  # host id and process id → how that rank is called


def names_in(look: Look) -> dict[tuple[int, str], str]:
    """How the ranks of the servers that were asked are called; equal ones with their host."""
    ranks = [
        (host, process)
        for host in look.hosts
        for process in _processes(look, host, _servers_asked(look, host))
    ]
    labels = [_rank(process).label for _, process in ranks]
    return {
        (host["host_id"], process.id): label
        if labels.count(label) == 1
        else f"{label} ({host['name']}, pid {process.pid})"
        for (host, process), label in zip(ranks, labels, strict=True)
    }


def ras_of(look: Look, names: Names) -> RasLook:
    """What the answers say of the ranks in *names*; others are not mapped to."""
    taken, unread = [], []
    items = [one for one in look.items if one.kind == "nccl ras" and one.artifact_id is not None]
    for item in sorted(items, key=_by_time)[:MOST_ANSWERS]:
        source = str(item.artifact_id)
        try:
            taken.append(Taken(read_status(_body(look, item)), source, item.taken_at))
        except ConsoleError as error:
            unread.append(Unread(source, error.detail))
    return look_at(taken, unread, list(_known(look, names)))


def _by_time(item: DiagnosticItem) -> tuple[str, int]:
    return item.taken_at.isoformat() if item.taken_at else "", item.id or 0


def _body(look: Look, item: DiagnosticItem) -> bytes:
    """Raises NotFound, Damaged, TooLarge."""
    with reading(look.work.stores.engine) as session:
        sha256 = get_artifact(session, item.artifact_id or 0).sha256
    return look.work.stores.artifacts.read(sha256, _MOST_BYTES)


def _known(look: Look, names: Names) -> Iterator[Known]:
    for host in look.hosts:
        for process in _processes(look, host, _servers_asked(look, host)):
            label = names.get((host["host_id"], process.id))
            if label is not None:
                rank = _rank(process)
                yield Known(
                    label=label,
                    host=host["name"],
                    pid=process.inner_pid or process.pid,
                    certain=process.inner_pid is not None or process.own_pid_namespace is False,
                    devices=tuple(one.index for one in process.gpus or ()),
                    numbers=RankNumbers(rank.label, tp=rank.tp, pp=rank.pp, dp=rank.dp, ep=rank.ep),
                )


def _servers_asked(look: Look, host: Mapping[str, Any]) -> set[str]:
    """The servers whose NCCL answered: a process that was started anew has another id."""
    return {
        one.process_id for one in look.items if one.host_id == host["host_id"] and one.process_id
    }


def _processes(look: Look, host: Mapping[str, Any], servers: Collection[str]) -> Iterator[Process]:
    told = processes_of(look.rows[host["host_id"]])
    for server in told.servers if told else ():
        if server.id in servers:
            yield from (one for one in server.processes if one.rank is not None)


def _rank(process: Process) -> Rank:
    assert process.rank is not None
    return process.rank
