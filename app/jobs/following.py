"""Begin what an agent does by itself, at most once for each process, and follow it to its end.

An item is written before the agent is told to begin. What is written as "asked" when a slice
starts was cut off: the agent is asked whether it knows of it, and is never told to begin again.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from app.domain.playbook import CoredumpTriggered
from app.errors import Conflict, ConsoleError, Unreachable
from app.jobs.begun import WAYS, WITH_FILE, Begun, Progress
from app.jobs.coredump_reading import conclude, read_next_dump
from app.jobs.looking import Look, pause
from app.store import findings, timeline
from app.store.database import writing
from app.store.findings import Found
from app.store.tables import DiagnosticItem, Job

POLL_SECONDS = 0.5
SILENT = timedelta(minutes=10)  # an agent that is not heard for so long is not followed on
UNKNOWN = "It is not known whether the agent was told to begin; it is not told again."


def follow(look: Look) -> bool:
    """Begin what is due, then look how far it is; whether there is more to do.

    An agent does one at a time: the next process of a host is begun when the last one is over.
    A coredump that came is read in between.
    """
    way = WAYS[look.diagnostic.kind]
    open_items = [one for one in look.items if not one.detail.get("over")]
    waiting = _waiting(look)
    busy = {one.host_id for one in open_items}
    due = [host for host in waiting if host["host_id"] not in busy]
    if due:
        look.work.about_to_act()
        for host in due:
            look.work.check()
            _begin(look, way, host, host["process_ids"][0])
        if all(host in due and len(host["process_ids"]) == 1 for host in waiting):
            look.work.done_acting()  # what is begun goes on; what is not would need consent anew
        return True
    if read_next_dump(look):
        return True
    if open_items:
        _look_on(look, way, open_items)
        return pause(POLL_SECONDS)
    conclude(look)
    return False


def _waiting(look: Look) -> list[dict[str, Any]]:
    """The hosts of processes that are not begun yet, with these only."""
    begun = {(one.host_id, one.process_id) for one in look.items}
    left = (
        (host, [one for one in host["process_ids"] if (host["host_id"], one) not in begun])
        for host in look.hosts
    )
    return [{**host, "process_ids": process_ids} for host, process_ids in left if process_ids]


def _begin(look: Look, way: Begun, host: dict[str, Any], process_id: str) -> None:
    item = DiagnosticItem(
        diagnostic_id=host["diagnostic_id"],
        host_id=host["host_id"],
        host_name=host["name"],
        process_id=process_id,
        pid=int(process_id.partition(".")[0]),
        rank=host["ranks"].get(process_id),
        taken_at=datetime.now(UTC),
        state="asked",
        kind=way.kind,
        says="The agent is told to begin.",
        detail={},
    )
    look.keep([Found(item)])
    try:
        _check_last_one_ended(look, host)
        client, name = look.client(host), look.own_name(host)
    except ConsoleError as error:
        _note_refusal(item, error)
    else:
        _tell_to_begin(look, item, partial(way.begin, client, process_id, name))
    look.keep([Found(item)])


def _tell_to_begin(look: Look, item: DiagnosticItem, begin: Callable[[], Progress]) -> None:
    try:
        progress = begin()
    except Unreachable as error:
        if error.nothing_sent:
            _note_refusal(item, error)
        else:  # it stays "asked": the agent is asked about it later
            item.says = f"{error.what} {UNKNOWN}"
    except ConsoleError as error:
        _note_refusal(item, error)
    else:
        _note(item, progress)
        _tell_sent(look, item)


def _check_last_one_ended(look: Look, host: dict[str, Any]) -> None:
    """Raises Conflict where one of this host is not over, but is no longer watched."""
    if any(one.host_id == host["host_id"] and one.state == "timed-out" for one in look.items):
        raise Conflict(
            "Not begun: the one before it on this host is not known to have ended.",
            fix="Look at the host, then ask for this process anew.",
        )


def _look_on(look: Look, way: Begun, items: list[DiagnosticItem]) -> None:
    hosts = [host for host in look.hosts if any(one.host_id == host["host_id"] for one in items)]

    def ask(host: dict[str, Any]) -> list[Found]:
        mine = [one for one in items if one.host_id == host["host_id"]]
        return [_looked(look, way, host, one) for one in mine]

    def came(_host: dict[str, Any], result: list[Found] | ConsoleError) -> None:
        if isinstance(result, ConsoleError):
            result = [_silent(one, result) for one in items if one.host_id == _host["host_id"]]
        look.keep(result)

    look.ask_each(hosts, ask, came)
    look.say(_told(items))


def _looked(look: Look, way: Begun, host: dict[str, Any], item: DiagnosticItem) -> Found:
    client = look.client(host)
    assert item.process_id is not None
    try:
        remote_id = item.detail.get("remote_id")
        progress = way.look(client, remote_id) if remote_id else way.find(client, item.process_id)
    except Unreachable as error:
        return _silent(item, error)
    except ConsoleError as error:
        _note_refusal(item, error)
        return Found(item)
    if progress is None or _older(progress, item):
        item.state, item.says, item.fix = "refused", UNKNOWN, "Look at the host, then ask anew."
        item.detail = {**item.detail, "over": True}
        return Found(item)
    _note(item, progress)
    return _with_file(look, host, item, progress)


def _with_file(look: Look, host: dict[str, Any], item: DiagnosticItem, progress: Progress) -> Found:
    file, limit_bytes = progress.file, look.work.stores.settings.coredump_fetch_max_bytes
    if not progress.over or file is None or progress.state not in WITH_FILE:
        return Found(item)
    if file.size_bytes > limit_bytes:
        item.says += f" Left on the host: larger than {limit_bytes} bytes."
        return Found(item)
    try:
        stored = look.fetch(look.client(host), file, max_bytes=limit_bytes)
        return Found(item, file, stored)
    except Unreachable as error:
        item.detail = {**item.detail, "over": False}  # it is whole there; asked for again
        return _silent(item, error)
    except ConsoleError as error:
        item.says += f" Left on the host: {error.detail}"
        return Found(item)


def _note(item: DiagnosticItem, progress: Progress) -> None:
    item.state, item.says = progress.state, progress.says[: findings.MAX_WORDS]
    item.fix, item.command = progress.fix, progress.command
    heard = {"remote_id": progress.remote_id, "over": progress.over}
    item.detail = {**progress.detail, **heard, "heard_at": datetime.now(UTC).isoformat()}


def _note_refusal(item: DiagnosticItem, error: ConsoleError) -> None:
    says = " ".join(part for part in (error.what, error.why) if part)
    item.state, item.says, item.kind = "refused", says[: findings.MAX_WORDS], error.code
    item.fix, item.command, item.detail = error.fix, error.command, {**item.detail, "over": True}


def _silent(item: DiagnosticItem, error: ConsoleError) -> Found:
    """An agent that does not answer now may do so soon: what it does goes on without us."""
    heard_at = item.detail.get("heard_at") or (item.taken_at or datetime.now(UTC)).isoformat()
    item.says = f"{error.what} Last heard of it at {heard_at[:19]}Z."
    if datetime.now(UTC) - datetime.fromisoformat(heard_at) > SILENT:
        item.state = "timed-out"
        item.detail = {**item.detail, "over": True}
    return Found(item)


def _older(progress: Progress, item: DiagnosticItem) -> bool:
    """Whether what the agent knows began before we asked: then it is another's."""
    if item.detail.get("remote_id") or item.taken_at is None:
        return False
    started_at = datetime.fromisoformat(progress.detail["started_at"])
    return started_at < item.taken_at - timedelta(seconds=60)  # clocks may differ so much


def _tell_sent(look: Look, item: DiagnosticItem) -> None:
    if item.kind != "coredump" or item.state == "refused":
        return
    job: Job = look.work.job
    assert look.diagnostic.id is not None
    process = ", ".join(part for part in (item.rank, f"pid {item.pid}") if part)
    event = CoredumpTriggered(look.diagnostic.id, item.host_name, process)
    with writing(look.work.stores.engine) as session:
        timeline.record(
            session,
            event,
            incident_id=look.diagnostic.incident_id,
            actor=findings.actor_of(job),
            at=datetime.now(UTC),
        )


def _told(items: list[DiagnosticItem]) -> str:
    states = sorted({one.state for one in items})
    return f"{len(items)} under way: {', '.join(states)}."
