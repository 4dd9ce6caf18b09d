"""Which ranks must do the same thing together: the logical groups, told from their labels.

Pipeline stages do different things by design, and so do data-parallel replicas. With attention
data parallelism all ranks are one world: there the TP numbers go on over the DP ranks, while
those of replicas begin anew.
"""

from collections.abc import Mapping, Sequence

from app.domain.titles import RankNumbers

Numbers = Mapping[str, RankNumbers | None]


def peer_groups(ranks: Sequence[str], numbers: Numbers) -> list[list[str]]:
    """*ranks* in groups of peers, in the order given; those without numbers are one group."""
    if any(numbers.get(rank) is None for rank in ranks):
        return [list(ranks)] if ranks else []
    replicas = are_replicas([numbers.get(rank) for rank in ranks])
    groups: dict[tuple[int | None, int | None], list[str]] = {}
    for rank in ranks:
        of = numbers.get(rank)
        key = (of.dp if of and replicas else None, of.pp if of else None)
        groups.setdefault(key, []).append(rank)
    return list(groups.values())


def group_name(group: Sequence[str], numbers: Numbers, *, alone: bool) -> str | None:
    """``PP1`` or ``DP0``: what the members of *group* share; None when there is one group."""
    if alone or (of := numbers.get(group[0])) is None:
        return None
    parts = [("DP", of.dp), ("PP", of.pp)]
    shared = [f"{name}{number}" for name, number in parts if number is not None]
    return "_".join(shared) or None


def are_replicas(ranks: Sequence[RankNumbers | None]) -> bool:
    """Whether the DP ranks are servers of their own: a TP number comes twice, or there is none."""
    seen: set[tuple[int | None, int | None]] = set()
    dp_ranks = set()
    for of in ranks:
        if of is None or of.dp is None:
            continue
        dp_ranks.add(of.dp)
        key = (of.tp, of.pp)
        if of.tp is None or key in seen:
            return True
        seen.add(key)
    return False
