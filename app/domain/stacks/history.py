"""One rank over its samples: where it is last, whether it moved, how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.domain.stacks.places import Place, place_of
from app.domain.stacks.samples import Sample

SURE_AFTER_SECONDS = 5.0  # from first to last; in less a busy server may be caught twice, too


@dataclass(frozen=True, slots=True)
class History:
    """The places of one rank, oldest first."""

    rank: str
    places: tuple[Place, ...]
    torn: bool  # its last sample was taken in motion and no other one confirms it
    seconds: float | None  # from the first to the last sample; None: not told

    @property
    def last(self) -> Place:
        return self.places[-1]

    @property
    def moved(self) -> bool | None:
        """Whether any call or line differs between samples; None with one sample."""
        return any(_differ(*pair) for pair in pairwise(self.places)) if self._several else None

    @property
    def moved_last(self) -> bool | None:
        """Whether it moved between the last two samples: what was before may be over."""
        return _differ(self.places[-2], self.places[-1]) if self._several else None

    @property
    def flickers(self) -> bool:
        """Whether its thread ran in one sample and slept in another, at the same calls."""
        return len({place.active for place in self.places}) > 1

    @property
    def soon(self) -> bool:
        """Whether the samples came too soon after each other to show that nothing moves."""
        if self.seconds is None:
            return False
        return self.seconds < SURE_AFTER_SECONDS * 0.9

    @property
    def _several(self) -> bool:
        return len(self.places) > 1


def history_of(samples: Sequence[Sample]) -> History | None:
    """*samples* of one rank in their order; None when none has a place."""
    ordered = sorted(samples, key=lambda sample: sample.number)
    placed = [(sample, place) for sample in ordered if (place := place_of(sample.dump))]
    if not placed:
        return None
    places = tuple(place for _, place in placed)
    in_motion = placed[-1][0].exact is False
    confirmed = len(places) > 1 and not _differ(places[-2], places[-1])
    times = [sample.taken_at for sample, _ in placed if sample.taken_at]
    known = len(times) == len(placed) > 1
    seconds = (max(times) - min(times)).total_seconds() if known else None
    return History(ordered[0].rank, places, in_motion and not confirmed, seconds)


def _differ(before: Place, after: Place) -> bool:
    return before.fine != after.fine or before.wait.kind != after.wait.kind
