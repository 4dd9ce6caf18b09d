"""What is asked of a host once: its facts, NCCL RAS, and the flight recorder of its ranks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.clients.agent import AgentClient
from app.domain.counting import counted
from app.errors import ConsoleError
from app.jobs.looking import Look
from app.protocol.messages import FileTaken
from app.store import findings
from app.store.database import writing
from app.store.findings import Found
from app.store.tables import DiagnosticItem


@dataclass
class _Answer:
    """What one host brought: items, and what is of no single process."""

    found: list[Found] = field(default_factory=list)
    part: dict[str, Any] | None = None


def look_at_hosts(look: Look) -> bool:
    """Ask every host that has not answered yet, all at once; False: there is nothing left."""
    ask = _WAYS[look.diagnostic.kind]
    known = {one.host_id for one in look.items}
    known |= {one["host_id"] for one in (look.diagnostic.answer or {}).get("hosts", [])}
    hosts = [host for host in look.hosts if host["host_id"] not in known]
    if hosts and look.work.job.intrusive:
        look.work.about_to_act()
    look.say(f"Asking {len(hosts)} of {counted(len(look.hosts), 'host')}.")
    look.ask_each(
        hosts,
        lambda host: ask(look, look.client(host), host),
        lambda host, result: _came(look, host, result),
    )
    return False


def _came(look: Look, host: dict[str, Any], result: _Answer | ConsoleError) -> None:
    if isinstance(result, ConsoleError):
        result = _Answer([findings.failed(host, result)])
    look.keep(result.found)
    if result.part is not None:
        head = {"host_id": host["host_id"], "name": host["name"]}
        with writing(look.work.stores.engine) as session:
            findings.answer(session, look.work.attempt, {**head, **result.part})


def _facts(look: Look, client: AgentClient, host: dict[str, Any]) -> _Answer:
    told = client.facts(host["process_ids"])
    found = [_brought(look, client, host, file) for file in told.files]
    found += [findings.refused(host, one) for one in told.refused]
    facts = [one.model_dump(mode="json") for one in told.facts]
    return _Answer(found, {"at": told.at.isoformat(), "facts": facts})


def _ras(look: Look, client: AgentClient, host: dict[str, Any]) -> _Answer:
    process_ids = host["process_ids"]
    told = client.ras(process_ids[0] if process_ids else None)
    found = [_brought(look, client, host, file) for file in told.readings]
    found += [findings.refused(host, one) for one in told.refused]
    return _Answer(found, {"at": told.at.isoformat(), "says": told.says})


def _flight_recorder(look: Look, client: AgentClient, host: dict[str, Any]) -> _Answer:
    answer = _Answer()
    for process_id in host["process_ids"]:
        try:
            file = client.flight_recorder(process_id)
            answer.found.append(_brought(look, client, host, file))
        except ConsoleError as error:
            answer.found.append(findings.failed(host, error, process_id=process_id))
    return answer


def _brought(look: Look, client: AgentClient, host: dict[str, Any], file: FileTaken) -> Found:
    item = DiagnosticItem(
        diagnostic_id=host["diagnostic_id"],
        host_id=host["host_id"],
        host_name=host["name"],
        process_id=file.process_id,
        pid=int(file.process_id.partition(".")[0]) if file.process_id else None,
        rank=host["ranks"].get(file.process_id),
        taken_at=file.taken_at,
        state="done",
        kind=file.kind,
        says=file.name,
        detail={},
    )
    try:
        return Found(item, file, look.fetch(client, file))
    except ConsoleError as error:
        return findings.failed(host, error, process_id=file.process_id)


_WAYS: Mapping[str, Callable[[Look, AgentClient, dict[str, Any]], _Answer]] = {
    "host facts": _facts,
    "nccl ras": _ras,
    "flight recorder": _flight_recorder,
}
