"""The fewest requests, then the shortest prompts and answers, that still bring the fault about.

Generators that yield what to try and are sent whether the fault came. What they hold as the best
was always tried and did fail, so a fault that comes only now and then makes the result larger,
never wrong.

For each request that is needed, a binary search over how many of the earlier ones it needs beside
it: delta debugging for requests, whose order is kept. With *n* requests of which *k* are needed
that takes about *k* × log2 *n* probes; 2 for each that stands right before another needed one,
as in a fault that so many requests add up to.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

MOST_ONE_BY_ONE = 8  # needed requests of which each is tried without, in the end


@dataclass(frozen=True, slots=True)
class Probe:
    """What to try: these requests in this order, with prompts cut to *lengths* where one is told.

    A length counts what the prompt is made of, token ids or characters, from its beginning.
    *new_tokens* is what an answer may have at most, where that is less than was asked for.
    """

    indexes: tuple[int, ...]
    lengths: Mapping[int, int] = field(default_factory=dict)
    new_tokens: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest that failed; None: not even all of them did. *probes* is how many were tried."""

    smallest: Probe | None
    probes: int


Probing = Generator[Probe, bool, Reduced]
NOTHING_TO_CUT: Mapping[int, int] = {}


def reduced(
    prompt_lengths: Mapping[int, int], new_tokens: Mapping[int, int] = NOTHING_TO_CUT
) -> Probing:
    """Yields probes of the requests in *prompt_lengths*, by index, in the order they are sent.

    *new_tokens* is what their answers may have at most, where that is told. Whoever runs it may
    stop at any time: the last probe that failed is the best so far.
    """
    trying = _Trying()
    indexes = tuple(prompt_lengths)
    if not indexes or not (yield from trying.fails(Probe(indexes))):
        return Reduced(None, trying.count)
    needed = yield from _needed(indexes, trying)
    needed = yield from _one_by_one(needed, trying)
    best = yield from _cut(Probe(needed), "lengths", prompt_lengths, trying)
    best = yield from _cut(best, "new_tokens", new_tokens, trying)
    return Reduced(best, trying.count)


class _Trying:
    """Asks for each probe once."""

    def __init__(self) -> None:
        self.count = 0
        self._known: dict[tuple[object, ...], bool] = {}

    def fails(self, probe: Probe) -> Generator[Probe, bool, bool]:
        cuts = (tuple(sorted(one.items())) for one in (probe.lengths, probe.new_tokens))
        key = (probe.indexes, *cuts)
        if key not in self._known:
            self.count += 1
            self._known[key] = yield probe
        return self._known[key]


def _needed(indexes: tuple[int, ...], trying: _Trying) -> Generator[Probe, bool, tuple[int, ...]]:
    """From the last to the first, each request without which what is before it does not fail."""
    found: tuple[int, ...] = ()
    before, dense = indexes, False  # dense: the last of those before was needed
    while before:
        if found and (yield from trying.fails(Probe(found))):
            break
        passes, fails = 0, len(before)
        middle = fails - 1 if dense else fails // 2
        while fails - passes > 1:
            if (yield from trying.fails(Probe(before[:middle] + found))):
                fails = middle
            else:
                passes = middle
            middle = (passes + fails) // 2
        dense = fails == len(before)
        found = (before[fails - 1], *found)
        before = before[: fails - 1]
    return found


def _one_by_one(
    needed: tuple[int, ...], trying: _Trying
) -> Generator[Probe, bool, tuple[int, ...]]:
    """Without each that is not needed after all: faults need not grow with the requests."""
    if not 1 < len(needed) <= MOST_ONE_BY_ONE:
        return needed
    for one in needed:
        rest = tuple(other for other in needed if other != one)
        if rest and (yield from trying.fails(Probe(rest))):
            needed = rest
    return needed


def _cut(
    best: Probe, what: Literal["lengths", "new_tokens"], whole: Mapping[int, int], trying: _Trying
) -> Generator[Probe, bool, Probe]:
    """Each prompt or answer cut as short as it may be while all else stays as it is by then."""
    for index in best.indexes:
        passes, fails = 0, whole.get(index, 0)
        middle = 1  # first: most faults need no answer at all
        while fails - passes > 1:
            shorter = _with(best, what, index, middle)
            if (yield from trying.fails(shorter)):
                best, fails = shorter, middle
            else:
                passes = middle
            middle = (passes + fails) // 2
    return best


def _with(probe: Probe, what: Literal["lengths", "new_tokens"], index: int, most: int) -> Probe:
    if what == "lengths":
        return replace(probe, lengths={**probe.lengths, index: most})
    return replace(probe, new_tokens={**probe.new_tokens, index: most})
