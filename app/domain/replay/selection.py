"""Which requests are sent: what an expression of ``dumps.choosing`` names, asked one by one."""

from bisect import bisect
from collections.abc import Container
from dataclasses import dataclass

from app.domain.dumps.choosing import END, EXAMPLE, read_choice
from app.domain.dumps.recorded import State
from app.errors import Malformed

_LONGEST = 200_000  # characters; a dump's rows are asked with fewer, as the database has limits


@dataclass(frozen=True, slots=True)
class Selection:
    """What an expression names. *spans* are half-open, in order, and none touches another."""

    spans: tuple[tuple[int, int], ...] = ()
    rids: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    suspects: bool = False

    def takes(
        self, index: int, rid: str | None, state: State | None, suspects: Container[int]
    ) -> bool:
        """Whether it names the request; *suspects* are the indexes of those to look at first."""
        return (
            self._spans_over(index)
            or rid in self.rids
            or state in self.states
            or (self.suspects and index in suspects)
        )

    def _spans_over(self, index: int) -> bool:
        at = bisect(self.spans, (index, END))
        return at > 0 and index < self.spans[at - 1][1]


EVERYTHING = Selection(spans=((0, END),))


def read_selection(text: str) -> Selection:
    """The selection that *text* says, of all requests where it is empty; raises Malformed."""
    if not text:
        return EVERYTHING
    choice = read_choice(text, longest=_LONGEST)
    if not choice:
        raise Malformed("The selection names no request.", fix=f"Name some, as in {EXAMPLE}.")
    return Selection(
        choice.spans, frozenset(choice.rids), frozenset(choice.states), choice.suspects
    )
