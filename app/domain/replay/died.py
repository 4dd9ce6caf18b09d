"""Whether the target went away in the middle of a replay, at which request, and who was in flight.

The moment is the first lost connection that no other connection outlived. One cut
connection while others go on is that request's own affair.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Literal

from app.domain.replay.outcomes import ErrorClass, Outcome, own_making

# "answers": it is there, and whether it serves is not known; "unknown": not even that.
After = Literal["up", "wedged", "down", "answers", "unknown"]
_LOST: frozenset[ErrorClass] = frozenset(("connection-reset", "stream-cut", "connection-refused"))
# Answers that were under way when it died may still be read from the socket.
_STILL_READ_SECONDS = 0.2
_MOST_NAMED = 1000


@dataclass(frozen=True, slots=True)
class Absence:
    """A time in which the sender knocked at the target in vain, in seconds since 1970.

    *back_at* None: it stayed away, and the rest was not sent. *refused*: nothing listened there;
    otherwise it may have been the network.
    """

    since: float
    back_at: float | None
    refused: bool


@dataclass(frozen=True, slots=True)
class Death:
    """The target went away at *at* (seconds since 1970).

    *last_sent* is the index of the last request sent before; *in_flight* those that it had not
    answered, in the order they were sent: one of them may be what killed it. *certain*: new
    connections were refused afterwards, or it was found down; otherwise it may have been the
    network. *back_at* is when the first later request was sent that it answered, or when it
    answered a knock. *restarted*: nothing listened there in between.
    """

    at: float
    last_sent: int
    in_flight: tuple[int, ...]
    certain: bool
    back_at: float | None
    restarted: bool = False

    @property
    def says(self) -> str:
        """The sentence for it."""
        sure = "The target went away" if self.certain else "The target seems to have gone away"
        count = len(self.in_flight)
        unanswered = "1 was" if count == 1 else f"{count:,} were"
        return f"{sure} after request {self.last_sent}, while {unanswered} in flight.{self._back}"

    @property
    def _back(self) -> str:
        if self.back_at is None:
            return ""
        if not self.restarted:
            return " It was back later."
        after = f"{self.back_at - self.at:,.1f} s"
        return f" It was back {after} later, restarted: nothing had listened in between."


def death(
    outcomes: Iterable[Outcome],
    *,
    up_before: bool = False,
    after: After = "unknown",
    absences: Collection[Absence] = (),
) -> Death | None:
    """When and where the target died, told by *outcomes* and by how it was found *after* them.

    *absences* are what knocking told between the requests. *up_before*: it was seen alive before
    the first request. None where nothing says that it died; also where it never answered and was
    not seen alive, as it was then perhaps never up.
    """
    sent = sorted((one for one in outcomes if one.sent_at is not None), key=_start)
    answered = [one for one in sent if is_answer(one) and one.error not in _LOST]
    knocked = [one.back_at for one in absences if one.back_at is not None]
    answers = sorted([*map(_start, answered), *knocked])
    refusals = [_end(one) for one in sent if one.error == "connection-refused"]
    refusals = sorted([*refusals, *(one.since for one in absences if one.refused)])
    for moment in _moments(sent, answered, up_before=up_before):
        back_at = _next(answers, moment)
        refused_at = _from(refusals, moment)
        refused = refused_at is not None and (back_at is None or refused_at < back_at)
        if not refused and (back_at is not None or after in ("up", "wedged")):
            continue  # one connection was lost while nothing else ran, and the next one held
        before = sent[: bisect_right(sent, moment, key=_start)]
        return Death(
            at=moment,
            last_sent=_last_accepted(before),
            in_flight=_in_flight(before, moment),
            certain=refused or after == "down",
            back_at=back_at,
            restarted=refused and back_at is not None,
        )
    return None


def is_answer(one: Outcome) -> bool:
    """Whether the target took the request and said something; not so where the fault is ours."""
    return one.status is not None and (one.error is None or not own_making(one.error))


def _moments(
    sent: Sequence[Outcome], answered: Sequence[Outcome], *, up_before: bool
) -> Iterator[float]:
    """The ends of lost connections that no other connection outlived, after a first answer.

    A refusal counts only once something has reached the target.
    """
    held = [one for one in sent if one.error not in _LOST]
    starts = [_start(one) for one in held]
    latest_ends = list(accumulate(map(_end, held), max))
    alive = -inf if up_before else min(map(_end, answered), default=inf)
    reached = min((_end(one) for one in sent if one.error != "connection-refused"), default=inf)
    for moment in sorted(_end(one) for one in sent if one.error in _LOST):
        place = bisect_right(starts, moment)
        outlived = place > 0 and latest_ends[place - 1] > moment + _STILL_READ_SECONDS
        if moment >= max(alive, reached) and not outlived:
            yield moment


def _from(ordered: Sequence[float], moment: float) -> float | None:
    """The first of *ordered* that is not earlier than *moment*."""
    place = bisect_left(ordered, moment)
    return ordered[place] if place < len(ordered) else None


def _next(ordered: Sequence[float], moment: float) -> float | None:
    """The first of *ordered* that is later than *moment*."""
    place = bisect_right(ordered, moment)
    return ordered[place] if place < len(ordered) else None


def _start(one: Outcome) -> float:
    return one.sent_at or 0.0


def _end(one: Outcome) -> float:
    return _start(one) + (one.e2e_seconds or 0.0)


def _last_accepted(before: Sequence[Outcome]) -> int:
    """The last that reached the target: what was refused never did."""
    reached = [one.index for one in before if one.error != "connection-refused"]
    return (reached or [one.index for one in before])[-1]


def _in_flight(before: Sequence[Outcome], moment: float) -> tuple[int, ...]:
    """What was sent and not answered at *moment*."""
    open_then = (
        one.index
        for one in before
        if not one.completed and one.error != "connection-refused" and _end(one) >= moment
    )
    return tuple(open_then)[:_MOST_NAMED]
