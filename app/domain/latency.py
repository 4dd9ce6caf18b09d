"""Latency and throughput of the time between two looks; since-start means stand apart.

Without /metrics nothing is known of latency. The cumulative sums of /v1/loads (0.5.17 and
later) still tell what the schedulers did in the window.
"""

from collections.abc import Sequence
from typing import Any

from app.domain.exposition import Exposition, by_label
from app.domain.figures import rounded
from app.domain.histograms import Window, quantile, window
from app.domain.loads import Loads, RankLoad
from app.domain.progress import Scrape

_FAMILIES = {
    "ttft": ("sglang:time_to_first_token_seconds",),
    "e2e": ("sglang:e2e_request_latency_seconds",),
    "queue": ("sglang:queue_time_seconds", "sglang:queue_time_s"),  # the second: 0.5.2 only
    "inter_token": ("sglang:inter_token_latency_seconds",),
}
_STAGES = "sglang:per_stage_req_latency_seconds"
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_MOST_STAGES = 40
FAMILIES = (*(name for names in _FAMILIES.values() for name in names), _STAGES)

Figures = dict[str, Any]


def latency(scrapes: Sequence[Scrape], window_seconds: float | None) -> dict[str, Any]:
    """Figures of the window between the first and the last of *scrapes*, and since the start.

    A family is None where the server does not tell it, where there was only one scrape, or
    where a counter fell in between.
    """
    first = scrapes[0].exposition if len(scrapes) > 1 else None
    last = scrapes[-1].exposition if scrapes else None
    told = {name: _figures_of(first, last, name) for name in _FAMILIES}
    return {
        "window_seconds": rounded(window_seconds),
        **told,
        "stages": _stages(first, last) if first and last else {},
        "lifetime": {name: _lifetime(last, name) for name in _FAMILIES},
    }


def _figures_of(first: Exposition | None, last: Exposition | None, name: str) -> Figures | None:
    if first is None or last is None:
        return None
    return next(
        (found for family in _FAMILIES[name] if (found := _read(first, last, family))), None
    )


def _lifetime(last: Exposition | None, name: str) -> Figures | None:
    """Since the process started: says little about now."""
    if last is None:
        return None
    return next((found for family in _FAMILIES[name] if (found := _read(None, last, family))), None)


def _read(
    first: Exposition | None, last: Exposition, family: str, where: dict[str, str] | None = None
) -> Figures | None:
    seen = window(first, last, family, where=where)
    return None if seen is None else _as_json(seen)


def _as_json(seen: Window) -> Figures:
    return {
        "n": seen.n,
        "mean": rounded(seen.mean, 6),
        **{name: _bound(quantile(seen, share)) for name, share in _QUANTILES.items()},
        "problems": list(seen.problems),
    }


def _bound(value: float | dict[str, float] | None) -> float | dict[str, float] | None:
    return rounded(value, 6) if isinstance(value, float) else value


def _stages(first: Exposition, last: Exposition) -> dict[str, Figures]:
    names = sorted(by_label(last, f"{_STAGES}_count", "stage"))[:_MOST_STAGES]
    read = {name: _read(first, last, _STAGES, {"stage": name}) for name in names}
    return {name: figures for name, figures in read.items() if figures is not None}


def work_done(loads: Sequence[Loads]) -> dict[str, Any] | None:
    """What the schedulers did between two looks at /v1/loads, all ranks together.

    None without two answers of a version that counts (0.5.17 and later), or where a sum fell.
    """
    if len(loads) < 2:
        return None
    before = {rank.dp_rank: rank for rank in loads[0].ranks}
    pairs = [(before[rank.dp_rank], rank) for rank in loads[-1].ranks if rank.dp_rank in before]
    if not pairs or len(pairs) != len(loads[-1].ranks):
        return None
    seconds = _seconds(loads)
    sums = _summed(pairs)
    if seconds is None or any(value is None or value < 0 for value in sums.values()):
        return None
    return {"window_seconds": rounded(seconds), **_rates(sums, seconds, len(pairs))}


def _seconds(loads: Sequence[Loads]) -> float | None:
    first, last = loads[0].asked_at, loads[-1].asked_at
    return last - first if first is not None and last is not None and last > first else None


def _summed(pairs: list[tuple[RankLoad, RankLoad]]) -> dict[str, float | None]:
    return {
        name: _sum_of([_step(old, new, name) for old, new in pairs])
        for name in (
            "prefill_tokens_total",
            "prefill_busy_us_total",
            "decode_passes_total",
            "decode_tokens_total",
        )
    } | {"decode_us": _sum_of([_decode_us(new, old) for old, new in pairs])}


def _sum_of(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None and value >= 0]
    return sum(known) if len(known) == len(values) else None


def _step(old: RankLoad, new: RankLoad, name: str) -> float | None:
    before, after = getattr(old, name), getattr(new, name)
    return None if before is None or after is None else float(after - before)


def _decode_us(new: RankLoad, old: RankLoad) -> float:
    return (new.decode_moments or (0.0,) * 6)[2] - (old.decode_moments or (0.0,) * 6)[2]


def _rates(sums: dict[str, float | None], seconds: float, ranks: int) -> dict[str, Any]:
    """Rates of the window; the busy share is of all ranks' time."""
    of = {name: value or 0.0 for name, value in sums.items()}
    passes = of["decode_passes_total"]
    return {
        "prefill_tokens_per_second": rounded(of["prefill_tokens_total"] / seconds),
        "prefill_busy_share": rounded(of["prefill_busy_us_total"] / 1e6 / seconds / ranks),
        "decode_passes_per_second": rounded(passes / seconds),
        "decode_tokens_per_second": rounded(of["decode_tokens_total"] / seconds),
        "decode_pass_mean_seconds": rounded(of["decode_us"] / 1e6 / passes, 6) if passes else None,
    }
