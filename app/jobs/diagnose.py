"""Look into the processes of hosts: which way leads to which kind of evidence, and how it ends.

Every way goes on from the rows: what is written down is not taken again. What pauses, slows or
may end a process is begun once; cut off, it is ``interrupted`` until somebody asks for it anew.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from app.domain.diagnostic_words import Came, summed_up
from app.errors import Conflict, Unreachable
from app.jobs.following import follow
from app.jobs.host_looks import look_at_hosts
from app.jobs.looking import Look, pause
from app.jobs.ras_reading import take_ras
from app.jobs.server_dumps import copy_dumps
from app.jobs.stacks import take_stacks
from app.jobs.work import NotHere, Work
from app.store import findings
from app.store.database import writing
from app.store.tables import DiagnosticItem, Job
from app.store.turns import PAUSING, take_turn

WAIT_FOR_BUNDLE = timedelta(seconds=60)
WAIT_FOR_AGENT = timedelta(seconds=60)

WAYS: Mapping[str, Callable[[Look], bool]] = {
    "stacks": take_stacks,
    "native stacks": take_stacks,
    "host facts": look_at_hosts,
    "nccl ras": take_ras,
    "server dumps": copy_dumps,
    "flight recorder": look_at_hosts,
    "cpu profile": follow,
    "coredump": follow,
}


def diagnose(work: Work) -> bool:
    """One slice of a diagnostic; whether there is more to do."""
    look = Look.open(work)
    _check_in_reach(look)
    if look.diagnostic.kind in PAUSING and (rival := _rival(work)):
        return _wait(look, rival)
    if WAYS[look.diagnostic.kind](look):
        return True
    _finish(Look.open(work))
    return False


def _check_in_reach(look: Look) -> None:
    """An agent inside another process of this console is asked by the worker there."""
    agents = look.work.stores.agents
    away = [row.name for row in look.rows.values() if not agents.reaches(row)]
    if not away:
        return
    if datetime.now(UTC) - look.diagnostic.asked_at > WAIT_FOR_AGENT:
        raise Unreachable(
            f"The agent of {away[0]} runs inside another process of this console.",
            fix="Start `incident-console serve` there with a worker, and resume this.",
        )
    raise NotHere


def _rival(work: Work) -> Job | None:
    with writing(work.stores.engine) as session:
        return take_turn(session, work.attempt, at=datetime.now(UTC))


def _wait(look: Look, rival: Job) -> bool:
    waits_since = look.work.job.enqueued_at or look.diagnostic.asked_at
    what = "A bundle of this target is collected" if rival.kind == "collect" else "Stacks are taken"
    if datetime.now(UTC) - waits_since > WAIT_FOR_BUNDLE:
        raise Conflict(
            f"{what} by job {rival.id} for more than 60 s.",
            why="Stacks would hold up its answers.",
            fix="Cancel that job, or resume this one when it is over.",
        )
    look.say(f"{what} by job {rival.id}; waiting for it, at most 60 s.")
    return pause(0.5)


def _finish(look: Look) -> None:
    hosts = [host["name"] for host in look.hosts]
    says = summed_up(look.diagnostic.kind, hosts, [_came(one) for one in look.items])
    with writing(look.work.stores.engine) as session:
        findings.finish(session, look.work.attempt, says, at=datetime.now(UTC))


def _came(item: DiagnosticItem) -> Came:
    process = f"{item.host_id} {item.process_id}"
    return Came(process, item.state, item.says)
