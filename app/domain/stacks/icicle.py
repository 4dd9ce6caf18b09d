"""A tree of calls as an icicle: each call a bar as wide as the ranks that are in it.

Widths are whole ranks, so nothing is rounded: the calls made from one lie under it, side by side,
and together are never wider. Where they are narrower, ranks end there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar


class Counted(Protocol):
    """A call: the number of ranks that are in it, and the calls made from it."""

    @property
    def count(self) -> int: ...

    @property
    def calls(self) -> Sequence[Self]: ...


Call = TypeVar("Call", bound=Counted)


@dataclass(frozen=True, slots=True)
class Bar(Generic[Call]):
    """Where *call* lies: *start* and *width* in ranks from the left, *depth* in rows from 0."""

    call: Call
    start: int
    width: int
    depth: int
    begins: bool  # whether fewer ranks are in it than in the call above


def icicle(calls: Sequence[Call]) -> Iterator[Bar[Call]]:
    """The bars of *calls* and of all below them, a call before those below it; order as given."""
    return _below(calls, start=0, depth=0, above=None)


def _below(
    calls: Sequence[Call], *, start: int, depth: int, above: int | None
) -> Iterator[Bar[Call]]:
    for call in calls:
        yield Bar(call, start, call.count, depth, begins=call.count != above)
        yield from _below(call.calls, start=start, depth=depth + 1, above=call.count)
        start += call.count
