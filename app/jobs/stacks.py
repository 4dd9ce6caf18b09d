"""Stacks: one sample of every process on every host is one slice, all in the same second."""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from app.clients.agent import AgentClient
from app.errors import ConsoleError
from app.jobs.looking import Look, pause
from app.protocol.messages import StackSample, StacksAnswer, StacksRequest
from app.store import findings
from app.store.findings import Found
from app.store.tables import DiagnosticItem

HEAD_START = timedelta(seconds=0.3)  # for the request to be on all hosts before any begins


def take_stacks(look: Look) -> bool:
    """Take the next sample of whoever lacks it; whether there is more to do."""
    arguments = look.work.job.arguments
    for sample in range(1, arguments["samples"] + 1):
        missing = [host for host in look.hosts if not _has(look, host, sample)]
        if missing:
            return _take(look, missing, sample)
    return False


def _take(look: Look, hosts: list[dict[str, Any]], sample: int) -> bool:
    arguments = look.work.job.arguments
    wait_seconds = _due_in_seconds(look, sample, arguments["interval_seconds"])
    if wait_seconds > 0:
        return pause(wait_seconds)
    look.say(f"Sample {sample} of {arguments['samples']}.")
    begin = datetime.now(UTC) + HEAD_START if len(hosts) > 1 else None

    def ask(host: dict[str, Any]) -> list[Found]:
        client = look.client(host)
        answer = client.stacks(_request(look, host, sample, begin))
        return _found(look, client, host, answer, sample)

    def came(host: dict[str, Any], result: list[Found] | ConsoleError) -> None:
        if isinstance(result, ConsoleError):
            result = [findings.failed(host, result, sample=sample)]
        look.keep(result)

    look.ask_each(hosts, ask, came)
    return True


def _request(
    look: Look, host: dict[str, Any], sample: int, begin: datetime | None
) -> StacksRequest:
    mode: Literal["plain", "native"] = "native" if look.diagnostic.kind != "stacks" else "plain"
    off_seconds = look.rows[host["host_id"]].clock_offset_seconds or 0.0
    return StacksRequest(
        process_ids=host["process_ids"],
        first_sample=sample,
        mode=mode,
        # By the clock of the host, whose second is to be the same one.
        not_before=begin + timedelta(seconds=off_seconds) if begin else None,
    )


def _found(
    look: Look, client: AgentClient, host: dict[str, Any], answer: StacksAnswer, sample: int
) -> list[Found]:
    found = [_brought(look, client, host, one) for one in answer.done]
    found += [findings.refused(host, one, sample=sample) for one in answer.refused]
    told = {one.item.process_id for one in found}
    silent = ConsoleError("The agent told nothing of this process.")
    for process_id in host["process_ids"]:
        if process_id not in told:
            found.append(findings.failed(host, silent, process_id=process_id, sample=sample))
    return found


def _brought(look: Look, client: AgentClient, host: dict[str, Any], taken: StackSample) -> Found:
    try:
        stored = look.fetch(client, taken.file)
    except ConsoleError as error:
        # Of the process that was asked for, whatever the answer calls it.
        lost = findings.failed(host, error, process_id=taken.process_id, sample=taken.sample)
        lost.item.says = f"Taken, but not brought over: {lost.item.says}"
        lost.item.detail = {"file": taken.file.model_dump(mode="json")}
        return lost
    item = DiagnosticItem(
        diagnostic_id=host["diagnostic_id"],
        host_id=host["host_id"],
        host_name=host["name"],
        process_id=taken.process_id,
        pid=taken.pid,
        rank=taken.rank,
        sample=taken.sample,
        taken_at=taken.taken_at,
        seconds=taken.seconds,
        mode=taken.mode,
        exact=taken.exact,
        state="done",
        kind="stacks",
        says=" ".join(taken.notes)[: findings.MAX_WORDS],
        detail={
            "threads": taken.threads,
            "state_before": taken.state_before,
            "state_after": taken.state_after,
        },
    )
    return Found(item, taken.file, stored)


def _has(look: Look, host: dict[str, Any], sample: int) -> bool:
    return any(one.host_id == host["host_id"] and one.sample == sample for one in look.items)


def _due_in_seconds(look: Look, sample: int, interval_seconds: float) -> float:
    """Counted from the first sample that was taken, so that a slow one delays no other."""
    first = min((one.taken_at for one in look.items if one.taken_at), default=None)
    if first is None:
        return 0.0
    due = first + timedelta(seconds=(sample - 1) * interval_seconds)
    return (due - datetime.now(UTC)).total_seconds()
