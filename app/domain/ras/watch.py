"""Answers of NCCL's RAS, one after the other → what moved in each communicator, and who is behind.

Counts of one answer are no snapshot: ranks are asked one after the other while they go on. Only
a difference that stays from one answer to the next, while no count grows, is a standstill.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.domain.ras.status import Communicator, Member, Status

Growth = Literal["all", "some", "none"]
Standing = Literal["behind", "ahead", "different collectives", "uneven", "even", "unknown"]
APART: frozenset[Standing] = frozenset(("behind", "ahead", "different collectives", "uneven"))


@dataclass(frozen=True, slots=True)
class Taken:
    """One answer. *source*: its path, or the number of its artifact."""

    status: Status
    source: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """A communicator in the last answer that has it, beside the first.

    *growth* None: one answer, or none that can be compared. *low* and *high* are counts of all
    collectives together; *few* are the ranks that have the lower one, or are ahead, or differ.
    """

    last: Communicator
    first: Communicator | None
    sources: tuple[str, ...]
    seconds: float | None
    growth: Growth | None
    standing: Standing
    few: tuple[int, ...] = ()
    few_count: int = 0
    counted: int = 0  # ranks with a count
    low: int = 0
    high: int = 0

    @property
    def stuck(self) -> bool | None:
        """True: ranks differ and no count grew. None: not known, as where all are even."""
        if self.growth in ("all", "some"):
            return False
        return True if self.growth == "none" and self.standing in APART else None


@dataclass(frozen=True, slots=True)
class _Stands:
    standing: Standing
    few: tuple[int, ...] = ()
    few_count: int = 0
    counted: int = 0
    low: int = 0
    high: int = 0


def watch(taken: Sequence[Taken]) -> tuple[Watched, ...]:
    """Each communicator of *taken*, which is in the order of time."""
    seen: dict[str, list[tuple[Taken, Communicator]]] = {}
    doubtful: set[str] = set()
    for one in taken:
        here: set[str] = set()
        for communicator in one.status.communicators:
            doubtful |= {communicator.id} & here  # two of one name: which one is which?
            here.add(communicator.id)
            seen.setdefault(communicator.id, []).append((one, communicator))
    return tuple(_watched(looks, certain=name not in doubtful) for name, looks in seen.items())


def totals(communicator: Communicator) -> dict[int, int]:
    """Rank → how many collectives it launched, for ranks that tell every kind that differs."""
    return {rank: sum(counts) for rank, counts in _vectors(communicator).items()}


def _watched(looks: Sequence[tuple[Taken, Communicator]], *, certain: bool) -> Watched:
    (begun, first), (ended, last) = looks[0], looks[-1]
    twice = certain and begun is not ended
    seconds = (ended.at - begun.at).total_seconds() if begun.at and ended.at and twice else None
    stands = _stands(last)
    return Watched(
        last=last,
        first=first if twice else None,
        sources=(begun.source, ended.source) if twice else (ended.source,),
        seconds=seconds,
        growth=_growth(first, last) if twice else None,
        standing=stands.standing,
        few=stands.few,
        few_count=stands.few_count,
        counted=stands.counted,
        low=stands.low,
        high=stands.high,
    )


def _growth(first: Communicator, last: Communicator) -> Growth | None:
    if not first.spread or not last.spread:
        return None
    before, after = _counts(first.members), _counts(last.members)
    if any(after[key] < before[key] for key in before.keys() & after.keys()):
        return None  # counts never fall: it is another communicator of that name
    if first.spread == last.spread and all(
        after[key] == before[key] for key in before.keys() & after.keys()
    ):
        return "none"
    once, now = totals(first), totals(last)
    grew = [rank for rank in once.keys() & now.keys() if now[rank] > once[rank]]
    everyone = max(last.size or 0, len(last.members))
    same_kinds = first.spread.keys() == last.spread.keys()
    return "all" if same_kinds and len(grew) == everyone else "some"


def _counts(members: Sequence[Member]) -> Mapping[tuple[int, str], int]:
    return {(one.rank, kind): count for one in members for kind, count in one.counts.items()}


def _vectors(communicator: Communicator) -> dict[int, tuple[int, ...]]:
    kinds = sorted(communicator.spread)
    return {
        one.rank: tuple(one.counts[kind] for kind in kinds)
        for one in communicator.members
        if kinds and all(kind in one.counts for kind in kinds)
    }


def _stands(communicator: Communicator) -> _Stands:
    vectors = _vectors(communicator)
    counted = max((sum(counts.values()) for counts in communicator.spread.values()), default=0)
    if counted > len(vectors):
        return _by_groups(communicator, counted)
    if not vectors:
        return _Stands("unknown")
    sums = {rank: sum(vector) for rank, vector in vectors.items()}
    low, high = min(sums.values()), max(sums.values())
    if len(set(vectors.values())) == 1:
        return _Stands("even", counted=counted, low=low, high=high)
    lowest = [rank for rank, one in sums.items() if one == low]
    if low == high or not _below(vectors, lowest):
        few = _rarest(vectors)
        return _Stands("different collectives", few, len(few), counted, low, high)
    if 2 * len(lowest) <= len(vectors):
        return _Stands("behind", tuple(sorted(lowest)), len(lowest), counted, low, high)
    ahead = tuple(sorted(rank for rank, one in sums.items() if one > low))
    return _Stands("ahead", ahead, len(ahead), counted, low, high)


def _by_groups(communicator: Communicator, counted: int) -> _Stands:
    """Where groups are too large to be listed, and who is in them is not certain."""
    if len(communicator.spread) > 1:
        return _Stands("uneven", counted=counted)
    [(kind, counts)] = communicator.spread.items()
    low, high = min(counts), max(counts)
    if 2 * counts[low] > counted:
        ahead = tuple(one.rank for one in communicator.members if one.counts.get(kind, low) > low)
        return _Stands("ahead", ahead, counted - counts[low], counted, low, high)
    behind = tuple(one.rank for one in communicator.members if one.counts.get(kind) == low)
    return _Stands("behind", behind, counts[low], counted, low, high)


def _below(vectors: Mapping[int, tuple[int, ...]], lowest: Sequence[int]) -> bool:
    """Whether *lowest* are behind in no kind further than the others, and ahead in none."""
    there = [vectors[rank] for rank in lowest]
    most = [max(column) for column in zip(*there, strict=True)]
    ahead = [one for rank, one in vectors.items() if rank not in set(lowest)]
    least = [min(column) for column in zip(*ahead, strict=True)]
    return all(low <= high for low, high in zip(most, least, strict=True))


def _rarest(vectors: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """The ranks outside the largest group, where they are a clear minority."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank, vector in vectors.items():
        groups.setdefault(vector, []).append(rank)
    most = max(groups.values(), key=len)
    few = sorted(vectors.keys() - set(most))
    return tuple(few) if 2 * len(few) < len(vectors) else ()
