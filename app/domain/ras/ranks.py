"""Ranks of a communicator → ranks of the server, or why that cannot be told. Never a guess.

NCCL knows processes by address and pid inside the container; a server has several communicators,
and rank 1 of one need not be rank 1 of another. Numbers are taken for those of the server only
where a communicator has as many ranks as a server of one tensor-parallel group.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.ras.status import Communicator, Whose
from app.domain.titles import RankNumbers


@dataclass(frozen=True, slots=True)
class Known:
    """A rank of the server. *certain*: its *pid* is the one inside its container."""

    label: str
    host: str | None
    pid: int | None
    certain: bool = True
    devices: tuple[int, ...] = ()  # as the driver numbers them; none: not known
    numbers: RankNumbers | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """Rank of the communicator → label. *why*: what is not mapped, and for which reason."""

    labels: Mapping[int, str]
    why: str | None = None


def hosts_of(
    communicators: Iterable[Communicator], known: Sequence[Known]
) -> Mapping[str, str | None]:
    """NCCL's addresses → our hosts, where the pids leave one way only."""
    theirs: dict[str, set[int]] = {}
    for whose in (whose for one in communicators for _, whose in _processes(one)):
        if whose.host and whose.pid:
            theirs.setdefault(whose.host, set()).add(whose.pid)
    ours: dict[str | None, set[int]] = {}
    for one in known:
        ours.setdefault(one.host, set()).update({one.pid} if one.pid else ())
    if len(theirs) == len(ours) == 1:
        return {next(iter(theirs)): next(iter(ours))}
    fits = {
        address: [host for host, there in ours.items() if pids <= there]
        for address, pids in theirs.items()
    }
    sole = {address: hosts[0] for address, hosts in fits.items() if len(hosts) == 1}
    taken = Counter(sole.values())
    return {address: host for address, host in sole.items() if taken[host] == 1}


def named(
    communicator: Communicator, known: Sequence[Known], hosts: Mapping[str, str | None]
) -> Named:
    """The labels of the ranks of *communicator*, by their processes, else by their numbers."""
    if not known:
        return Named({}, "The ranks of the server are not known here.")
    labels, strangers = _by_process(communicator, known, hosts)
    ranks = {rank for rank, _ in _processes(communicator)}
    if ranks and ranks <= labels.keys():
        return Named(labels)
    if strangers and all(one.certain for one in known):
        return Named(labels, "Pids that NCCL tells are none of this server's ranks.")
    numbered = _by_number(communicator, known)
    if isinstance(numbered, str):
        return Named(labels, numbered)
    if any(numbered[rank] != label for rank, label in labels.items()):
        return Named(labels, "Its processes and its rank numbers do not agree.")
    return Named(numbered)


def _processes(communicator: Communicator) -> list[tuple[int, Whose]]:
    members = [(one.rank, one.whose) for one in communicator.members]
    return members + [(one.rank, one.whose) for one in communicator.absent]


def _by_process(
    communicator: Communicator, known: Sequence[Known], hosts: Mapping[str, str | None]
) -> tuple[dict[int, str], int]:
    """Labels by host and pid, by GPU where two containers have the pid; and how many fit none."""
    by_pid: dict[tuple[str | None, int | None], list[Known]] = {}
    for one in known:
        by_pid.setdefault((one.host, one.pid), []).append(one)
    labels: dict[int, str] = {}
    strangers = 0
    for rank, whose in _processes(communicator):
        if whose.pid is None or whose.host not in hosts:
            continue
        fits = by_pid.get((hosts[whose.host or ""], whose.pid), [])
        strangers += not fits
        if len(fits) > 1:
            fits = [one for one in fits if whose.nvml_device in one.devices]
        if len(fits) == 1:
            labels[rank] = fits[0].label
    told = Counter(labels.values())
    return {rank: label for rank, label in labels.items() if told[label] == 1}, strangers


def _by_number(communicator: Communicator, known: Sequence[Known]) -> dict[int, str] | str:
    """Labels by rank number; why not, where numbers of several groups may be meant."""
    size = communicator.size
    if size != len(known):
        told = "an unknown number of" if size is None else f"{size:,}"
        return f"It has {told} ranks and the server {len(known):,}: numbers do not tell who is who."
    if any(one.numbers is None or one.numbers.tp is None for one in known):
        return "The numbers of the server's ranks are not known."
    stages = {one.numbers.pp if one.numbers else None for one in known}
    by_number = {
        one.numbers.tp: one.label
        for one in known
        if one.numbers is not None and one.numbers.tp is not None
    }
    if len(stages) > 1 or set(by_number) != set(range(size)):
        return "The server has several groups of ranks: numbers do not tell who is who."
    return {number: label for number, label in by_number.items() if number is not None}
