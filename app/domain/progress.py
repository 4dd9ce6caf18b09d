"""Did anything move between two looks? Counters are believed, gauges are only dated.

A counter that fell was set back: another process answers now. Nothing is then said about
movement, and no rate is ever negative.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.exposition import Exposition, by_label, counter_change, total
from app.domain.figures import rounded
from app.domain.loads import MOST_RANKS, STALE_SECONDS, Loads, RankLoad

# Counted when a request ends or gives its first token. A long decode leaves them still.
REQUEST_COUNTERS = (
    "sglang:num_requests_total",
    "sglang:prompt_tokens_total",
    "sglang:generation_tokens_total",
    "sglang:time_to_first_token_seconds_count",
    "sglang:e2e_request_latency_seconds_count",
)
# Counted at each pass of the model or each streamed token; a health probe moves them too.
STEP_COUNTERS = (
    "sglang:inter_token_latency_seconds_count",
    "sglang:cuda_graph_passes_total",
)
# Shown beside the others, but no sign of progress.
OTHER_COUNTERS = (
    "sglang:num_retracted_requests_total",
    "sglang:num_aborted_requests_total",
)
SHORTEST_WINDOW_SECONDS = 1.0  # two looks closer than this say nothing of standing still
_LOAD_COUNTERS = ("prefill_tokens_total", "decode_passes_total", "decode_tokens_total")


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading of /metrics and when it was asked for (epoch seconds; None if not known)."""

    artifact: str
    exposition: Exposition
    at: float | None = None


@dataclass(frozen=True, slots=True)
class CounterMove:
    """One counter at two moments; ``difference`` is None when it fell."""

    name: str
    artifact: str
    at: str
    before: float
    after: float
    difference: float | None
    seconds: float | None
    dp_rank: int | None = None

    def as_json(self) -> dict[str, Any]:
        rate = None
        if self.difference is not None and self.seconds:
            rate = rounded(self.difference / self.seconds)
        return {
            "name": self.name,
            "artifact": self.artifact,
            "at": self.at,
            "dp_rank": self.dp_rank,
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "seconds": rounded(self.seconds),
            "per_second": rate,
        }


@dataclass(frozen=True, slots=True)
class RankProgress:
    """One DP rank: whether it has work, and for how long nothing of it moved."""

    dp_rank: int
    work: bool | None
    quiet_seconds: float | None  # 0 when it moved; None when not known


@dataclass(frozen=True, slots=True)
class Progress:
    """What moved between the first and the last look of one bundle."""

    moves: tuple[CounterMove, ...] = ()
    ranks: tuple[RankProgress, ...] = ()
    window_seconds: float | None = None
    moved: bool | None = None  # None: fewer than two looks, or a counter fell
    work: bool | None = None  # at the last look
    work_throughout: bool = False  # at the first and at the last look
    quiet_seconds: float | None = None  # for how long the whole server surely did not move

    @property
    def fell(self) -> tuple[CounterMove, ...]:
        return tuple(move for move in self.moves if move.difference is None)

    @property
    def still_ranks(self) -> tuple[RankProgress, ...]:
        """Ranks with work of which nothing moved for some seconds while another rank moved."""
        if not any(rank.quiet_seconds == 0 for rank in self.ranks):
            return ()
        return tuple(
            rank
            for rank in self.ranks
            if rank.work and rank.quiet_seconds and rank.quiet_seconds >= STALE_SECONDS
        )

    @property
    def requests_moved(self) -> bool | None:
        """Whether requests began or ended; probes and long decodes do not count."""
        known = [move for move in self.moves if move.name in REQUEST_COUNTERS]
        if not known or self.fell:
            return None
        return any(move.difference for move in known)


def progress(
    scrapes: Sequence[Scrape], loads: Sequence[Loads], interval_seconds: float | None = None
) -> Progress:
    """What moved over *scrapes* and *loads*, each in the order in which they were asked.

    interval_seconds stands in where the scrapes do not say when they were made.
    """
    window = _window(scrapes, interval_seconds)
    moves = (*_metric_moves(scrapes, window), *_load_moves(loads))
    moved = _moved(moves)
    ranks = tuple(_rank_progress(rank, loads, moves) for rank in loads[-1].ranks) if loads else ()
    throughout = _work(scrapes[:1], loads[:1]) is True and _work(scrapes, loads) is True
    whole = Progress(moves, ranks, window, moved, _work(scrapes, loads), work_throughout=throughout)
    return Progress(
        moves=moves,
        ranks=ranks,
        window_seconds=window,
        moved=moved,
        work=whole.work,
        work_throughout=throughout,
        quiet_seconds=_quiet(whole, loads),
    )


def _window(scrapes: Sequence[Scrape], interval_seconds: float | None) -> float | None:
    if len(scrapes) < 2:
        return None
    first, last = scrapes[0].at, scrapes[-1].at
    if first is None or last is None:
        return interval_seconds
    return last - first if last > first else None


def _metric_moves(scrapes: Sequence[Scrape], window: float | None) -> Iterable[CounterMove]:
    if len(scrapes) < 2:
        return
    first, last = scrapes[0], scrapes[-1]
    if window is not None and window < SHORTEST_WINDOW_SECONDS:
        return
    for name in (*REQUEST_COUNTERS, *STEP_COUNTERS, *OTHER_COUNTERS):
        change = counter_change(first.exposition, last.exposition, name)
        if change is not None:
            yield CounterMove(
                name, last.artifact, name, change.before, change.after, change.difference, window
            )
    yield from _passes_of_ranks(first, last, window)


def _passes_of_ranks(first: Scrape, last: Scrape, window: float | None) -> Iterable[CounterMove]:
    """Passes of the model by DP rank: the label is there only with more than one rank."""
    name = "sglang:cuda_graph_passes_total"
    before = by_label(first.exposition, name, "dp_rank")
    after = by_label(last.exposition, name, "dp_rank")
    for rank in sorted(before.keys() & after.keys())[:MOST_RANKS]:
        if rank.isdecimal() and rank.isascii():
            place, rise = f'{name}{{dp_rank="{rank}"}}', _rise(before[rank], after[rank])
            old, new, number = before[rank], after[rank], int(rank[:9])
            yield CounterMove(name, last.artifact, place, old, new, rise, window, number)


def _rise(before: float, after: float) -> float | None:
    return after - before if after >= before else None


def _load_moves(loads: Sequence[Loads]) -> Iterable[CounterMove]:
    if len(loads) < 2:
        return
    first, last = loads[0], loads[-1]
    if (last.asked_at or 0.0) - (first.asked_at or 0.0) < SHORTEST_WINDOW_SECONDS:
        return
    before = {rank.dp_rank: rank for rank in first.ranks}
    for rank in last.ranks:
        earlier = before.get(rank.dp_rank)
        if earlier is None:
            continue
        seconds = _between(first, last, earlier, rank)
        for name in _LOAD_COUNTERS:
            old, new = getattr(earlier, name), getattr(rank, name)
            if old is not None and new is not None:
                rise = _rise(old, new)
                yield CounterMove(
                    name, last.artifact, rank.place, old, new, rise, seconds, rank.dp_rank
                )


def _between(first: Loads, last: Loads, earlier: RankLoad, later: RankLoad) -> float | None:
    """Seconds between two snapshots of a rank, or between the answers if nothing was published."""
    if earlier.published_at is not None and later.published_at is not None:
        published = later.published_at - earlier.published_at
        if published > 0:
            return published
    if first.asked_at is None or last.asked_at is None or last.asked_at <= first.asked_at:
        return None
    return last.asked_at - first.asked_at


def _moved(moves: Sequence[CounterMove]) -> bool | None:
    telling = [move for move in moves if move.name not in OTHER_COUNTERS]
    if not telling or any(move.difference is None for move in telling):
        return None
    return any(move.difference for move in telling)


def _rank_progress(
    rank: RankLoad, loads: Sequence[Loads], moves: Sequence[CounterMove]
) -> RankProgress:
    own = [move for move in moves if move.dp_rank == rank.dp_rank]
    quiet = rank.age_seconds
    if any(move.difference for move in own):
        quiet = 0.0
    elif own and _had_work(rank.dp_rank, loads[0]) and rank.has_work:
        quiet = max((move.seconds or 0.0 for move in own), default=0.0)
        quiet = max(quiet, rank.age_seconds or 0.0)
    return RankProgress(rank.dp_rank, rank.has_work, quiet)


def _had_work(dp_rank: int, loads: Loads) -> bool:
    return any(rank.dp_rank == dp_rank and rank.has_work for rank in loads.ranks)


def _work(scrapes: Sequence[Scrape], loads: Sequence[Loads]) -> bool | None:
    """Whether requests run or wait at the last look; a stale "none" is not known to hold still."""
    if loads and loads[-1].ranks:
        states = [rank.has_work for rank in loads[-1].ranks]
        if any(states):
            return True
        return False if all(state is False for state in states) else None
    if not scrapes:
        return None
    running, waiting = gauges(scrapes[-1].exposition)
    if running or waiting:
        return True
    return False if running == 0 and waiting == 0 else None


def gauges(exposition: Exposition) -> tuple[float | None, float | None]:
    """Running and waiting as the gauges of /metrics tell them; they freeze with the scheduler."""
    return (
        total(exposition, "sglang:num_running_reqs"),
        total(exposition, "sglang:num_queue_reqs"),
    )


def _quiet(seen: Progress, loads: Sequence[Loads]) -> float | None:
    """For how long nothing of the server moved for sure; None when something did, or unknown."""
    if seen.moved:
        return None
    known = []
    if seen.moved is False and seen.work_throughout and seen.window_seconds is not None:
        known.append(seen.window_seconds)
    quiets = [rank.quiet_seconds for rank in seen.ranks]
    counted = [quiet for quiet in quiets if quiet is not None]
    if counted and len(counted) == len(quiets):
        known.append(min(counted))
    if not known and loads and loads[-1].youngest_seconds is not None:
        known.append(loads[-1].youngest_seconds)
    return max(known, default=None)
