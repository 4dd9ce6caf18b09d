"""One look at NCCL's RAS: its answers, what they say of each communicator, and whose ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.ras.ranks import Known, Named, hosts_of, named
from app.domain.ras.status import Whose
from app.domain.ras.watch import APART, Taken, Watched, totals, watch
from app.domain.stacks.counts import Counted


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that was taken for an answer and is none, with the reason."""

    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A process that NCCL lost. *label* None: which rank it is, is not known."""

    whose: Whose
    label: str | None


@dataclass(frozen=True, slots=True)
class RasLook:
    """Everything that was taken together; *watched* has what matters most first."""

    taken: tuple[Taken, ...]
    unread: tuple[Unread, ...]
    watched: tuple[Watched, ...]
    names: Mapping[str, Named]  # by the communicator's id
    dead: tuple[Gone, ...]
    silent: tuple[Gone, ...]
    dead_count: int
    silent_count: int

    @property
    def many(self) -> int:
        """How many communicators there are."""
        return max((one.status.many for one in self.taken), default=0)

    @property
    def ranks(self) -> int:
        """How many ranks the largest communicator has."""
        sizes = [one.last.size or len(one.last.members) for one in self.watched]
        rows = [row.size for one in self.taken for row in one.status.rows]
        return max([*sizes, *rows], default=0)

    @property
    def seconds(self) -> float | None:
        """Between the first and the last answer; None: one answer, or times are not known."""
        if len(self.taken) < 2 or self.taken[0].at is None or self.taken[-1].at is None:
            return None
        return (self.taken[-1].at - self.taken[0].at).total_seconds()


def look_at(taken: Sequence[Taken], unread: Sequence[Unread], known: Sequence[Known]) -> RasLook:
    """What *taken*, in the order of time, says of the ranks that are *known*."""
    watched = sorted(watch(taken), key=_first)
    hosts = hosts_of([one.last for one in watched], known)
    last = taken[-1:]  # what NCCL lost before and found again is not lost
    dead = list(dict.fromkeys(whose for one in last for whose in one.status.dead))
    silent = list(dict.fromkeys(whose for one in last for whose in one.status.silent))
    return RasLook(
        taken=tuple(taken),
        unread=tuple(unread),
        watched=tuple(watched),
        names={one.last.id: named(one.last, known, hosts) for one in watched},
        dead=tuple(Gone(whose, _label(whose, known, hosts)) for whose in dead),
        silent=tuple(Gone(whose, _label(whose, known, hosts)) for whose in silent),
        dead_count=max([len(dead), *(one.status.dead_count for one in last)]),
        silent_count=max([len(silent), *(one.status.silent_count for one in last)]),
    )


def counted(look: RasLook) -> list[Counted]:
    """The counts of each communicator by label, where at least two of its ranks have one."""
    found = []
    for one in look.watched:
        labels = look.names[one.last.id].labels
        counts = {labels[rank]: n for rank, n in totals(one.last).items() if rank in labels}
        if len(counts) > 1:
            grew = {"all": True, "none": False}.get(one.growth or "")
            found.append(Counted(counts, grew, one.last.short, one.sources, one.seconds))
    return found


def _first(one: Watched) -> tuple[bool, bool, int, str]:
    apart = one.standing in APART
    return one.stuck is not True, not apart, -(one.last.size or 0), one.last.id


def _label(whose: Whose, known: Sequence[Known], hosts: Mapping[str, str | None]) -> str | None:
    if whose.host not in hosts or whose.pid is None:
        return None
    host = hosts[whose.host or ""]
    fits = [one.label for one in known if (one.host, one.pid) == (host, whose.pid)]
    return fits[0] if len(fits) == 1 else None
