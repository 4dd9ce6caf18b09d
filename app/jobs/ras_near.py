"""NCCL's counts of about the same time as stacks, for the ranks whose stacks they are."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.domain.ras.look import counted
from app.domain.stacks.counts import Counted
from app.domain.stacks.samples import Reading
from app.jobs.looking import Look
from app.jobs.ras_answers import ras_of
from app.store.database import reading as reading_from
from app.store.near_looks import NEAR, near_looks

# How far apart stacks and counts may be for a standstill of one to be one of the other.
SAME_TIME = timedelta(seconds=60)


def counts_near(look: Look, reading: Reading) -> list[Counted]:
    """Of the newest answers near to the samples of *reading*; none without both."""
    moments = [one.taken_at for one in reading.samples if one.taken_at]
    if not moments:
        return []
    with reading_from(look.work.stores.engine) as session:
        rows = near_looks(session, look.diagnostic, ("nccl ras",))
    for row in rows:
        ras = ras_of(Look.at(look.work, row), _names(look, reading))
        times = [one.at for one in ras.taken if one.at]
        if times and _gap(times, moments) <= NEAR:
            return list(_as_of(counted(ras), times, moments))
    return []


def _as_of(
    counts: Sequence[Counted], times: Sequence[datetime], moments: Sequence[datetime]
) -> Iterator[Counted]:
    """*counts* with what their growth says of the time of the samples.

    Growth before the first sample says nothing of what came then; a standstill a minute away
    need not be that of the samples.
    """
    for one in counts:
        if one.grew and min(times) < min(moments):
            continue
        if one.grew is False and _gap(times, moments) > SAME_TIME:
            yield replace(one, grew=None)
        else:
            yield one


def _gap(some: Sequence[datetime], others: Sequence[datetime]) -> timedelta:
    """The time between two stretches; nothing where they overlap."""
    return max(min(others) - max(some), min(some) - max(others), timedelta(0))


def _names(look: Look, reading: Reading) -> dict[tuple[int, str], str]:
    """How the comparison calls the processes whose stacks were asked for."""
    by_place = {(one.path.partition("/")[0], one.pid): one.rank for one in reading.samples}
    missing = {one.pid: one.rank for one in reading.missing}
    found = {}
    for host in look.hosts:
        folder = f"host-{host['name'].replace('/', '_')}"
        for process_id in host["process_ids"]:
            pid = int(process_id.partition(".")[0])
            rank = by_place.get((folder, pid)) or _alone(look, pid, missing)
            if rank is not None:
                found[(host["host_id"], process_id)] = rank
    return found


def _alone(look: Look, pid: int, missing: dict[int | None, str]) -> str | None:
    """A rank without stacks, where only one host has that pid."""
    heads = [one.partition(".")[0] for host in look.hosts for one in host["process_ids"]]
    return missing.get(pid) if heads.count(str(pid)) == 1 else None
