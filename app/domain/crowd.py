"""Which servers are told first where more run than fit: nobody's made-up ones hide another's."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server that may be told; *uid* and *container* None: not known, or none."""

    root: int  # pid
    uid: int | None
    container: str | None
    evidence: int  # how much speaks for a real one, such as a GPU in use
    start_ticks: int


def in_turns(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best one of each user, then the second of each, and so on.

    Among those of one user its containers take turns in the same way. Better is what more speaks
    for, then what runs for longer: whoever comes to hide a server comes later than that.
    """
    best_first = sorted(candidates, key=_worth)
    of_containers = _turns(best_first, lambda one: (one.uid, one.container))
    return _turns(of_containers, lambda one: one.uid)


def _worth(one: Candidate) -> tuple[int, int, int]:
    return -one.evidence, one.start_ticks, one.root


def _turns(ordered: list[Candidate], group: Callable[[Candidate], Hashable]) -> list[Candidate]:
    taken: Counter[Hashable] = Counter()
    numbered = []
    for one in ordered:
        numbered.append((taken[group(one)], one))
        taken[group(one)] += 1
    return [one for _, one in sorted(numbered, key=lambda pair: pair[0])]
