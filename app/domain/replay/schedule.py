"""When each request is due, from one fixed start: recorded arrivals divided by the speed.

Nothing is due relative to what was sent before it, so no delay of one request moves the next.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from app.domain.replay.options import Options

IDLE_GAP_SECONDS = 300.0  # a longer silence is no part of a load


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request as the schedule sees it; *group* is the session it belongs to, None for none.

    *started_at* and *ended_at* are seconds since 1970; None is unknown.
    """

    index: int
    started_at: float | None
    ended_at: float | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """One request's place in the replay."""

    index: int
    due_seconds: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """The slots in the order they are due, and the silences longer than 300 s among them."""

    slots: tuple[Slot, ...] = ()
    gaps_seconds: tuple[float, ...] = ()  # as recorded
    without_time: int = 0  # whose arrival is not known: they are due with the last one

    @property
    def span_seconds(self) -> float:
        """From the start to the last request."""
        return self.slots[-1].due_seconds if self.slots else 0.0


def schedule(arrivals: Iterable[Arrival], options: Options) -> Schedule:
    """Who is sent, and when. The order of *arrivals* changes nothing.

    A window and a sample keep sessions whole: a session is in when its first request is.
    """
    ordered = sorted(arrivals, key=_order)
    chosen = _sampled(_in_window(ordered, options), options)
    timed = [one.started_at for one in chosen if one.started_at is not None]
    gaps = tuple(gap for gap in _steps(timed) if gap > IDLE_GAP_SECONDS)
    dues = _dues(timed, options)
    last = dues[-1] if dues else 0.0
    dues += [last] * (len(chosen) - len(timed))
    slots = tuple(Slot(one.index, due) for one, due in zip(chosen, dues, strict=True))
    return Schedule(slots, gaps, without_time=len(chosen) - len(timed))


def most_in_flight(spans: Iterable[tuple[float, float]]) -> int:
    """How many of *spans*, each a start and an end, overlap at most; 0 of none."""
    changes = sorted(
        change for start, end in spans if end >= start for change in ((start, 1), (end, -1))
    )
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def _order(one: Arrival) -> tuple[bool, float, int]:
    return one.started_at is None, one.started_at or 0.0, one.index


def _in_window(ordered: Sequence[Arrival], options: Options) -> list[Arrival]:
    window = options.window
    if not window.from_seconds and window.until_seconds is None:
        return list(ordered)
    first = next((one.started_at for one in ordered if one.started_at is not None), None)
    if first is None:
        return []
    inside: dict[str, bool] = {}
    kept = []
    for one in ordered:
        if one.started_at is None:
            continue
        after = one.started_at - first
        until = window.until_seconds
        within = after >= window.from_seconds and (until is None or after < until)
        if inside.setdefault(_group(one), within):
            kept.append(one)
    return kept


def _sampled(chosen: Sequence[Arrival], options: Options) -> list[Arrival]:
    """A share of the groups, told by a hash of each: whoever else is there changes nothing."""
    if options.sample >= 1:
        return list(chosen)
    limit = options.sample * 2**64
    return [one for one in chosen if _draw(options.seed, _group(one)) < limit]


def _draw(seed: int, group: str) -> int:
    digest = sha256(f"{seed}:{group}".encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:8], "big")


def _group(one: Arrival) -> str:
    return f"request {one.index}" if one.group is None else f"session {one.group}"


def _steps(timed: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(timed)]


def _dues(timed: Sequence[float], options: Options) -> list[float]:
    """Seconds after the start, each from its own arrival alone, less the silences cut before it."""
    if options.mode != "open":
        return [0.0] * len(timed)  # whenever there is room for it
    dues, saved = [], 0.0
    most = options.cut_gaps_to_seconds
    for place, moment in enumerate(timed):
        gap = moment - timed[place - 1] if place else 0.0
        if most is not None and gap > IDLE_GAP_SECONDS:
            saved += max(0.0, gap - most)
        dues.append((moment - timed[0] - saved) / options.speed)
    return dues
