"""Which ranks should be there though no file speaks of them."""

import re
from collections.abc import Mapping, Sequence
from math import prod

from app.domain.stacks.peers import are_replicas
from app.domain.stacks.samples import Missing
from app.domain.titles import RankNumbers

_NUMBERED = re.compile(r"(rank)(\d{1,5})")
_MOST_INFERRED = 4_096

_Part = tuple[int | None, int | None]  # replica, pipeline stage


def never_tried(
    topology: Mapping[str, int], ranks: Sequence[RankNumbers | None]
) -> tuple[list[Missing], int | None]:
    """The ranks that nobody tried to read, and how many the server has; None: nothing tells.

    Whole replicas (``dp_size``) are left out of it: with attention DP they are among the TP
    ranks. Sizes tell it where the server's answer lies beside the stacks. Else a gap does:
    whoever has TP0 and TP7 has eight of them, in every stage and replica that was met.
    """
    told = prod(topology.get(size, 1) for size in ("tp_size", "pp_size")) if topology else None
    known = [one for one in ranks if one is not None]
    there = {one.label for one in known}
    if not there or len(there) != len(ranks):
        return [], told  # some have no numbers, or they begin anew on each host
    names = [name for name in _names(known, topology) if name not in there]
    return [_untried(name, told) for name in names[:_MOST_INFERRED]], told


def _names(known: Sequence[RankNumbers], topology: Mapping[str, int]) -> list[str]:
    """The labels of all ranks as far as they can be told; those of *known* as they write it."""
    by_rank = [found for one in known if (found := _NUMBERED.fullmatch(one.label))]
    if len(by_rank) == len(known):
        most = max(int(found[2]) for found in by_rank)
        return [f"rank{number}" for number in range(min(most + 1, _MOST_INFERRED))]
    if any(one.tp is None for one in known):
        return _stages(known, topology)
    replicas = are_replicas(known)
    labels = {((one.dp if replicas else None, one.pp), one.tp or 0): one.label for one in known}
    if len(labels) != len(known):
        return []  # it is not known which of them go together
    highest = max(one.tp or 0 for one in known)
    width = min(max(topology.get("tp_size", 0), highest + 1), _MOST_INFERRED)
    parts = _parts({part for part, _ in labels}, topology.get("pp_size", 0))
    return [
        labels.get((part, number)) or _label(part, number)
        for part in parts
        for number in range(width)
    ]


def _stages(known: Sequence[RankNumbers], topology: Mapping[str, int]) -> list[str]:
    """The names of all stages where ranks are named after nothing else."""
    if any(one.pp is None or one.label != f"PP{one.pp}" for one in known):
        return []
    highest = max(one.pp or 0 for one in known)
    return [f"PP{number}" for number in range(max(topology.get("pp_size", 0), highest + 1))]


def _parts(met: set[_Part], pp_size: int) -> list[_Part]:
    """The replicas that were met, each with all of its stages."""
    stages = [stage for _, stage in met if stage is not None]
    if not stages:
        return sorted(met, key=lambda part: part[0] or 0)
    replicas = sorted({replica for replica, _ in met}, key=lambda replica: replica or 0)
    many = min(max(pp_size, max(stages) + 1), _MOST_INFERRED)
    return [(replica, stage) for replica in replicas for stage in range(many)]


def _label(part: _Part, number: int) -> str:
    names = (("DP", part[0]), ("PP", part[1]), ("TP", number))
    return "_".join(f"{name}{told}" for name, told in names if told is not None)


def _untried(name: str, by_size: int | None) -> Missing:
    reason = "No try to read it is in these files"
    beside = f", and the server has {by_size} ranks." if by_size else ", and higher ranks are."
    return Missing(name, "not tried", reason + beside, "Take the stacks of all ranks.")
