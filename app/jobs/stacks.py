"""Stacks: one sample of every process on every host is one slice, all in the same second.

What the samples say together is told after each of them.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from app.clients.agent import AgentClient
from app.errors import ConsoleError
from app.jobs.comparing import compare_so_far
from app.jobs.looking import Look, pause
from app.protocol.messages import StackSample, StacksAnswer, StacksRequest
from app.protocol.signing import SKEW_SECONDS
from app.store import findings
from app.store.findings import Found
from app.store.tables import DiagnosticItem

CLOCK_DOUBT_SECONDS = 2.0  # so much two clocks may differ from what was last heard
HEAD_START = timedelta(seconds=0.3)  # for the request to be on all hosts before any begins


def take_stacks(look: Look) -> bool:
    """Take the next sample of whoever lacks it; whether there is more to do."""
    arguments = look.work.job.arguments
    for sample in range(1, arguments["samples"] + 1):
        missing = [host for host in look.hosts if not _has(look, host, sample)]
        if missing:
            return _take(look, missing, sample)
    compare_so_far(look)
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
    compare_so_far(look)
    return True


def _request(
    look: Look, host: dict[str, Any], sample: int, begin: datetime | None
) -> StacksRequest:
    mode: Literal["plain", "native"] = "native" if look.diagnostic.kind != "stacks" else "plain"
    offset = _clock_offset(look, host["host_id"])
    agreed = abs(offset) < timedelta(seconds=SKEW_SECONDS)
    return StacksRequest(
        process_ids=host["process_ids"],
        first_sample=sample,
        mode=mode,
        # By the clock of the host, whose second is to be the same one.
        not_before=begin + offset if begin and agreed else None,
    )


def _found(
    look: Look, client: AgentClient, host: dict[str, Any], answer: StacksAnswer, sample: int
) -> list[Found]:
    """One item for each process that was asked about, and none for others, whatever is told."""
    done = {one.process_id: one for one in answer.done}
    asked = [done[one] for one in host["process_ids"] if one in done]
    found = [_brought(look, client, host, one, sample) for one in asked]
    found += [findings.refused(host, one, sample=sample) for one in answer.refused]
    told = {one.item.process_id for one in found}
    silent = ConsoleError("The agent told nothing of this process.")
    for process_id in host["process_ids"]:
        if process_id not in told:
            found.append(findings.failed(host, silent, process_id=process_id, sample=sample))
    return found


def _brought(
    look: Look, client: AgentClient, host: dict[str, Any], taken: StackSample, sample: int
) -> Found:
    try:
        stored = look.fetch(client, taken.file)
    except ConsoleError as error:
        lost = findings.failed(host, error, process_id=taken.process_id, sample=sample)
        lost.item.says = f"Taken, but not brought over: {lost.item.says}"
        lost.item.detail = {"file": taken.file.model_dump(mode="json")}
        return lost
    item = DiagnosticItem(
        diagnostic_id=host["diagnostic_id"],
        host_id=host["host_id"],
        host_name=host["name"],
        process_id=taken.process_id,
        pid=int(taken.process_id.partition(".")[0]),
        rank=taken.rank,
        sample=sample,
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
    """Counted from the first sample that was taken, so that a slow one delays no other.

    By our own clock; a time that cannot be right is not waited for.
    """
    taken = [
        one.taken_at - _clock_offset(look, one.host_id)
        for one in look.items
        if one.taken_at is not None and one.host_id is not None
    ]
    if not taken:
        return 0.0
    between_seconds = (sample - 1) * interval_seconds
    due = min(taken) + timedelta(seconds=between_seconds)
    wait_seconds = (due - datetime.now(UTC)).total_seconds()
    return wait_seconds if wait_seconds <= between_seconds + CLOCK_DOUBT_SECONDS else 0.0


def _clock_offset(look: Look, host_id: int) -> timedelta:
    """How far the clock of a host was ahead of ours when it was last heard."""
    return timedelta(seconds=look.rows[host_id].clock_offset_seconds or 0.0)
