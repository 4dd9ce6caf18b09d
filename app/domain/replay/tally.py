"""What one run of a replay adds up to, while its outcomes come in."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from app.domain.replay.died import Absence, After, Death, death, is_answer
from app.domain.replay.latency import Measure, Pair, quantiles
from app.domain.replay.options import Mode
from app.domain.replay.outcomes import (
    TURNED_AWAY,
    UNANSWERED,
    ErrorClass,
    Outcome,
    own_making,
)
from app.domain.replay.output import Likeness, likeness
from app.domain.replay.planned import Recorded

LATENESS_BUDGET_MS = 25.0  # of its 99th percentile: beyond it, the load was not the recorded one


@dataclass(frozen=True, slots=True)
class Failures:
    """The requests that failed in one way. *own_making* of them say nothing of the target."""

    error: ErrorClass
    count: int
    own_making: int
    first_index: int
    example: str | None


@dataclass(frozen=True, slots=True)
class Trial:
    """One run, finished or cut short. Sets of indexes are in the order of the requests' due times.

    *valid* is False where our own sending was too late to be the recorded load, None where there
    is no time to keep. *blind* are those that never took part through our own making.
    """

    planned: int
    sent: int
    completed: int
    taken: int  # by the target: answered, failed or lost by its making, not refused
    failures: tuple[Failures, ...]
    blind: tuple[int, ...]
    unanswered: tuple[int, ...]
    silent_at_end: int  # unanswered requests after the last answer
    faulty: tuple[int, ...]  # failed by the target's making, an answer that stayed out apart
    turned_away: tuple[int, ...]  # of the faulty: busy, it never began with them
    again_unanswered: tuple[int, ...]  # recorded unfinished, and unanswered again
    reached: bool  # the target answered at least one, or was seen alive before
    after: After
    died: Death | None
    resumed: int  # how often it was cut off and gone on with: its load has so many gaps
    lateness_ms: dict[str, Any]
    lag_ms: float | None  # the longest that our own event loop stood still
    lag_p99_ms: float | None
    valid: bool | None
    recorded: dict[Measure, dict[str, Any]]
    replayed: dict[Measure, dict[str, Any]]
    pairs: dict[Measure, tuple[Pair, ...]]
    e2e_seconds: dict[int, float]
    cached_tokens: tuple[int, int, int]  # recorded, replayed, and of how many prompt tokens
    likenesses: dict[Likeness, tuple[int, ...]]
    tokens_per_second: float | None


class Tally:
    """Takes outcomes in, in any order, and adds them up."""

    def __init__(self, planned: int, mode: Mode = "open") -> None:
        self._planned, self._mode = planned, mode
        self._seen: list[tuple[Outcome, Recorded]] = []

    def see(self, outcome: Outcome, recorded: Recorded) -> None:
        """Take one request's outcome into account."""
        # The tokens are compared by now, and a hundred thousand answers would not fit.
        self._seen.append((outcome, recorded.without_answer()))

    def trial(
        self,
        *,
        up_before: bool = False,
        after: After = "unknown",
        absences: Collection[Absence] = (),
        resumed: int = 0,
    ) -> Trial:
        """All that was seen; *up_before* and *after* are how the target was found around it.

        *absences* are when it was not there meanwhile, *resumed* how often it was gone on with.
        """
        seen = sorted(self._seen, key=lambda pair: (pair[0].due_seconds, pair[0].index))
        outcomes = [outcome for outcome, _ in seen]
        sent = [one for one in outcomes if one.sent_at is not None]
        first_answer = min((_end(one) for one in sent if is_answer(one)), default=inf)
        own = {one.index for one in outcomes if _own(one, first_answer)}
        return Trial(
            planned=self._planned,
            sent=len(sent),
            completed=sum(one.completed for one in sent),
            taken=sum(one.error != "connection-refused" and one.index not in own for one in sent),
            failures=tuple(_failures(outcomes, own)),
            blind=tuple(one.index for one in outcomes if one.index in own),
            unanswered=tuple(one.index for one in sent if one.error in UNANSWERED),
            silent_at_end=_silent_at_end(sent),
            faulty=tuple(one.index for one in sent if _is_faulty(one, own)),
            turned_away=tuple(one.index for one in sent if one.error in TURNED_AWAY),
            again_unanswered=tuple(_again_unanswered(seen)),
            reached=first_answer < inf or up_before,
            after=after,
            died=death(sent, up_before=up_before, after=after, absences=absences),
            resumed=resumed,
            **self._own_times(sent),
            recorded={measure: _recorded(seen, measure) for measure in _MEASURES},
            replayed={measure: _replayed(sent, measure) for measure in _MEASURES},
            pairs={measure: tuple(_pairs(seen, measure)) for measure in _MEASURES},
            e2e_seconds={one.index: one.e2e_seconds or 0.0 for one in sent if one.completed},
            cached_tokens=_cached(seen),
            likenesses=_likenesses(seen),
            tokens_per_second=_tokens_per_second(sent),
        )

    def _own_times(self, sent: Sequence[Outcome]) -> dict[str, Any]:
        """What we were late by and stood still, and what that is worth, by its names in a Trial."""
        lateness = quantiles(one.lateness_ms for one in sent if one.lateness_ms is not None)
        lag = quantiles(one.lag_ms for one in sent if one.lag_ms is not None)
        p99 = lateness["p99"]
        timed = self._mode == "open" and p99 is not None
        return {
            "lateness_ms": lateness,
            "lag_ms": lag["max"],
            "lag_p99_ms": lag["p99"],
            "valid": p99 <= LATENESS_BUDGET_MS if timed else None,
        }


_MEASURES: tuple[Measure, ...] = ("ttft", "e2e")
_Seen = Iterable[tuple[Outcome, Recorded]]


def _end(one: Outcome) -> float:
    return (one.sent_at or 0.0) + (one.e2e_seconds or 0.0)


def _own(one: Outcome, first_answer: float) -> bool:
    if one.error is None:
        return False
    return own_making(one.error, answered_before=_end(one) >= first_answer)


def _is_faulty(one: Outcome, own: set[int]) -> bool:
    return one.error is not None and one.error not in UNANSWERED and one.index not in own


def _is_silent(one: Outcome) -> bool:
    """Whether not one token came; a long answer that ran into our deadline is no silence."""
    return one.error in UNANSWERED and one.ttft_seconds is None


def _again_unanswered(seen: _Seen) -> Iterator[int]:
    for outcome, recorded in seen:
        if _is_silent(outcome) and recorded.state == "unfinished":
            yield outcome.index


def _failures(outcomes: Iterable[Outcome], own: set[int]) -> Iterator[Failures]:
    """The most frequent first."""
    found: dict[ErrorClass, list[Outcome]] = {}
    for one in outcomes:
        if one.error is not None:
            found.setdefault(one.error, []).append(one)
    for error, members in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        example = next((one.says for one in members if one.says), None)
        ours = sum(one.index in own for one in members)
        yield Failures(error, len(members), ours, members[0].index, example)


def _silent_at_end(sent: Sequence[Outcome]) -> int:
    """How many requests waited in vain after the last sign of life, be it that of a refusal."""
    waited = [one for one in sent if _is_silent(one)]
    signs = (_end(one) for one in sent if not _is_silent(one))
    last_sign = max(signs, default=-inf)
    return sum(_end(one) > last_sign for one in waited)


def _recorded(seen: _Seen, measure: Measure) -> dict[str, Any]:
    return quantiles(
        seconds for _, recorded in seen if (seconds := _was(recorded, measure)) is not None
    )


def _replayed(sent: Iterable[Outcome], measure: Measure) -> dict[str, Any]:
    return quantiles(
        seconds for one in sent if one.completed and (seconds := _now(one, measure)) is not None
    )


def _pairs(seen: _Seen, measure: Measure) -> Iterator[Pair]:
    """Answered requests that are recorded as finished; of whole times those of equal length."""
    for outcome, recorded in seen:
        was, now = _was(recorded, measure), _now(outcome, measure)
        if was is None or now is None or not outcome.completed or recorded.state != "finished":
            continue
        as_long = outcome.completion_tokens == recorded.completion_tokens
        if measure == "ttft" or (as_long and recorded.completion_tokens is not None):
            yield Pair(outcome.index, was, now)


def _was(recorded: Recorded, measure: Measure) -> float | None:
    return recorded.ttft_seconds if measure == "ttft" else recorded.e2e_seconds


def _now(outcome: Outcome, measure: Measure) -> float | None:
    return outcome.ttft_seconds if measure == "ttft" else outcome.e2e_seconds


def _cached(seen: _Seen) -> tuple[int, int, int]:
    """Cached tokens recorded and replayed, and prompt tokens, of requests that tell all three."""
    was = now = prompt = 0
    for outcome, recorded in seen:
        told = (recorded.cached_tokens, outcome.cached_tokens, recorded.prompt_tokens)
        if outcome.completed and None not in told:
            was += recorded.cached_tokens or 0
            now += outcome.cached_tokens or 0
            prompt += recorded.prompt_tokens or 0
    return was, now, prompt


def _likenesses(seen: _Seen) -> dict[Likeness, tuple[int, ...]]:
    found: dict[Likeness, list[int]] = {}
    for outcome, recorded in seen:
        found.setdefault(likeness(outcome, recorded), []).append(outcome.index)
    return {like: tuple(indexes) for like, indexes in found.items()}


def _tokens_per_second(sent: Iterable[Outcome]) -> float | None:
    """Tokens answered over the time from the first sent to the last end."""
    sent = list(sent)
    tokens = [one.completion_tokens for one in sent if one.completion_tokens is not None]
    if not tokens:
        return None
    seconds = max(map(_end, sent)) - min(one.sent_at or 0.0 for one in sent)
    return round(sum(tokens) / seconds, 3) if seconds > 0 else None
