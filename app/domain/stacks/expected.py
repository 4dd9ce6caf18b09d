"""Which ranks should be there though no file speaks of them."""

import re
from collections.abc import Mapping, Sequence
from math import prod

from app.domain.stacks.samples import Missing

_TP = re.compile(r"TP(\d{1,5})")
_MOST_INFERRED = 4_096


def never_tried(
    topology: Mapping[str, int], ranks: Sequence[str]
) -> tuple[list[Missing], int | None]:
    """The ranks that nobody tried to read, and how many the server has; None: nothing tells.

    Replicas (``dp_size``) are left out of it: with attention DP they are among the TP ranks.
    Sizes tell it where the server's answer lies beside the stacks. Else a gap does: whoever has
    TP0 and TP7 has eight of them.
    """
    told = prod(topology.get(size, 1) for size in ("tp_size", "pp_size")) if topology else None
    numbers = [int(found[1]) for rank in ranks if (found := _TP.fullmatch(rank))]
    if not numbers or len(numbers) != len(ranks):
        return [], told
    by_size = topology.get("tp_size", 0)
    names = range(min(max(by_size, max(numbers) + 1), _MOST_INFERRED))
    there = set(numbers)
    missing = [_untried(number, by_size) for number in names if number not in there]
    return missing, told


def _untried(number: int, by_size: int) -> Missing:
    reason = "No try to read it is in these files"
    beside = f", and the server has {by_size} ranks." if by_size else ", and higher ranks are."
    return Missing(f"TP{number}", "not tried", reason + beside, "Take the stacks of all ranks.")
