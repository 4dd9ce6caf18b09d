"""Load of each DP rank and what moved between two looks, as rows; what is not known stays None."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.web.formats import number, span, visible

Summary = Mapping[str, Any]

HIGH_USE = 0.9  # share of KV tokens, from which SGLang may have to retract requests
LONGEST_NAME = 160
MOST_ROWS = 120
_FAMILIES = {
    "ttft": "time to first token",
    "e2e": "whole request",
    "queue": "time in the queue",
    "inter_token": "between two tokens",
}
FIGURES = ("mean", "p50", "p90", "p99")
_MICROSECONDS = 1e-3  # below a millisecond a figure is told in them


@dataclass(frozen=True, slots=True)
class RankRow:
    """One DP rank. ``stale``: its snapshot is so old that its gauges say nothing of now."""

    rank: int
    age_seconds: float | None
    stale: bool
    stuck: bool  # work is there and its counter of decode passes stood still
    running: int | None
    waiting: int | None
    use: float | None  # share of KV tokens, 0 to 1
    throughput: float | None  # tokens per second
    throughput_from: str | None  # window, told
    passes: float | None  # decode passes between the two looks

    @property
    def age(self) -> str:
        """In seconds where age decides: ``137 s``, not ``2 min``."""
        seconds = self.age_seconds
        return span(seconds) if seconds is None or seconds < 1 else f"{number(round(seconds, 1))} s"

    @property
    def use_percent(self) -> int:
        """Width of the gauge's bar, 0 to 100."""
        return round(100 * min(max(self.use or 0.0, 0.0), 1.0))

    @property
    def high(self) -> bool:
        return self.use is not None and self.use >= HIGH_USE


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One counter at two moments. ``difference`` None: it fell, another process answers now."""

    name: str
    before: float
    after: float
    difference: float | None
    per_second: float | None
    healthy_per_second: float | None
    stood_still: bool  # of a rank that has work
    of_rank: bool
    capture: str
    at: str

    @property
    def of_the_crowd(self) -> bool:
        """Whether it is one of many ranks that moved, and can be folded away."""
        return self.of_rank and not self.stood_still and self.difference is not None


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One kind of latency, its figures written out: mean, p50, p90, p99."""

    name: str
    samples: int | None  # in the window
    window: tuple[str, ...]
    healthy: tuple[str, ...]  # the same of the healthy bundle; empty without one
    since_start: str  # the mean since the server started


def rank_rows(summary: Summary) -> list[RankRow]:
    """One row for each DP rank of the newest answer about load, in order of rank."""
    moved = bool((summary.get("progress") or {}).get("moved"))
    passes = {
        move.get("dp_rank"): move.get("difference")
        for move in moves(summary)
        if "decode_passes" in str(move.get("name")) or "cuda_graph_passes" in str(move.get("name"))
    }
    ranks = (summary.get("load") or {}).get("per_rank") or []
    # What moved moved somewhere: with one rank, there.
    alive = moved and len(ranks) == 1
    return [_rank_row(rank, passes.get(rank["dp_rank"]), alive=alive) for rank in ranks[:MOST_ROWS]]


def moves(summary: Summary) -> Sequence[Summary]:
    """The counters of a summary that were looked at twice."""
    found: Sequence[Summary] = summary.get("between_scrapes") or []
    return found


def _rank_row(rank: Summary, passes: float | None, *, alive: bool) -> RankRow:
    return RankRow(
        rank=rank["dp_rank"],
        age_seconds=rank.get("age_seconds"),
        stale=bool(rank.get("stale")),
        stuck=bool(rank.get("running")) and passes == 0 and not alive,
        running=rank.get("running"),
        waiting=rank.get("waiting"),
        use=rank.get("token_usage"),
        throughput=rank.get("throughput"),
        throughput_from=rank.get("throughput_from"),
        passes=passes,
    )


def move_rows(summary: Summary, healthy: Summary) -> list[MoveRow]:
    """Counters before and after, those that fell or stood still first."""
    stuck = {row.rank for row in rank_rows(summary) if row.stuck}
    per_second = {_key(move): move.get("per_second") for move in moves(healthy)}
    rows = [
        MoveRow(
            name=_name(move),
            before=move["before"],
            after=move["after"],
            difference=move.get("difference"),
            per_second=move.get("per_second"),
            healthy_per_second=per_second.get(_key(move)),
            stood_still=move.get("difference") == 0 and move.get("dp_rank") in stuck,
            of_rank=move.get("dp_rank") is not None,
            capture=str(move.get("artifact")),
            at=str(move.get("at")),
        )
        for move in moves(summary)[:MOST_ROWS]
    ]
    return sorted(rows, key=lambda row: not (row.difference is None or row.stood_still))


def _key(move: Summary) -> tuple[str, Any]:
    return str(move.get("name")), move.get("dp_rank")


def _name(move: Summary) -> str:
    name = visible(str(move.get("name")).removeprefix("sglang:")[:LONGEST_NAME])
    rank = move.get("dp_rank")
    return name if rank is None else f'{name}{{dp_rank="{rank}"}}'


def latency_rows(summary: Summary, healthy: Summary) -> list[LatencyRow]:
    """Mean and quantiles of each family that the server tells, with their number of samples."""
    told, before = summary.get("latency") or {}, healthy.get("latency") or {}
    lifetime = told.get("lifetime") or {}
    return [
        LatencyRow(
            name=words,
            samples=(told.get(family) or {}).get("n"),
            window=_figures(told.get(family)),
            healthy=_figures(before[family]) if (before.get(family) or {}).get("n") else (),
            since_start=quantile_told(lifetime.get(family), "mean"),
        )
        for family, words in _FAMILIES.items()
        if told.get(family) or lifetime.get(family)
    ]


def _figures(figures: Summary | None) -> tuple[str, ...]:
    return tuple(quantile_told(figures, name) for name in FIGURES)


def quantile_told(figures: Summary | None, name: str) -> str:
    """``41 ms``, ``over 400 s`` for a bound, or why there is none."""
    if not figures:
        return "not known"
    value = figures.get(name)
    if isinstance(value, Mapping):
        return ", ".join(f"{word} {span(bound)}" for word, bound in value.items())
    if value is None:
        return "too few" if figures.get("n") else "none"
    return span(value) if value >= _MICROSECONDS else f"{value * 1e6:.0f} µs"
