"""How many collectives NCCL counts for ranks: who of one communicator is behind the others."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of the ranks of one communicator; only they can be compared with each other.

    *grew*: True if every count did between two answers, False if none did, None: not known, or
    some did. *sources* are the answers, *seconds* lie between them.
    """

    of: Mapping[str, int]
    grew: bool | None = None
    communicator: str | None = None
    sources: tuple[str, ...] = ()
    seconds: float | None = None

    def behind(self, among: Collection[str]) -> frozenset[str]:
        """Those of *among* with the lowest count, if they are at most half of them."""
        counts = {rank: self.of[rank] for rank in among if rank in self.of}
        if len(counts) < 2 or self.grew:
            return frozenset()
        low = min(counts.values())
        lowest = frozenset(rank for rank, count in counts.items() if count == low)
        # Else some are ahead instead: launches may be, without harm.
        fewer = len(lowest) < len(counts) and 2 * len(lowest) <= len(counts)
        return lowest if fewer else frozenset()


@dataclass(frozen=True, slots=True)
class Behind:
    """Ranks that are behind, and the communicator that shows it."""

    ranks: tuple[str, ...]
    by: Counted


def who_is_behind(counted: Sequence[Counted], among: Sequence[str]) -> Behind | None:
    """The ranks that every communicator with a difference agrees on; None where there is none.

    One that stood still between two answers is asked first, then the one with most ranks.
    """
    found = [(one, ranks) for one in counted if (ranks := one.behind(among))]
    if any(one.grew is False for one, _ in found):
        found = [(one, ranks) for one, ranks in found if one.grew is False]
    if not found:
        return None
    agreed = frozenset.intersection(*(ranks for _, ranks in found))
    if not agreed:
        return None
    by = max(found, key=lambda one: (len(one[0].of.keys() & set(among)), one[0].communicator or ""))
    return Behind(tuple(rank for rank in among if rank in agreed), by[0])


def all_grew(counted: Sequence[Counted], among: Sequence[str]) -> bool:
    """Whether one communicator that has all of *among* launched more on each of its ranks."""
    return any(one.grew is True and set(among) <= one.of.keys() for one in counted)
