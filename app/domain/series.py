"""Which of the series of one metric count, so that nothing is counted twice.

From sglang/srt: observability/metrics_collector.py (before 0.5.10 metrics/collector.py) and
managers/tokenizer_manager.py, read in 0.5.23:

* tp_rank, pp_rank, moe_ep_rank: with --enable-metrics-for-all-schedulers each rank of one
  engine tells the same figures. One rank is taken.
* dp_rank and every label not named here split the work. They are summed; so is cache_source,
  whose ``total`` counts the requests without detail.
* priority, in gauges: ``""`` is the total, the others are its parts and count only without it.
  In counters and histograms ``""`` stands for requests without a priority: they are summed.
* pid: the two gauges num_retracted_reqs and num_paused_reqs have no multiprocess mode, so each
  process that ever set them leaves a series, dead ones and those that only set 0 included.
  The largest is taken: it cannot come from a process that merely touched the gauge.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")

Key = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure. ``labels`` may be the same object in many samples: do not change it."""

    name: str
    labels: Mapping[str, str]
    value: float  # NaN and ±Inf are possible


def counted(
    samples: Iterable[Sample], *, adds_up: bool, apart: str | None = None
) -> dict[Key, float]:
    """The figures of one metric that may be summed, by labels without ranks and pid.

    adds_up: whether series share the figure out between them (counters, histograms), or some
    tell it whole (gauges). apart: a label whose values are kept apart, whatever it is. NaN does not
    count; of two samples with the same labels the later one does.
    """
    latest = {frozenset(one.labels.items()): one for one in samples if not math.isnan(one.value)}
    merged = frozenset((*RANKS, "pid")) - {apart}
    ranks = [rank for rank in RANKS if rank != apart]
    groups: defaultdict[Key, list[Sample]] = defaultdict(list)
    for key, sample in latest.items():
        groups[_without(key, merged)].append(sample)
    figures = {key: _of_one_rank(group, ranks, adds_up) for key, group in groups.items()}
    return figures if adds_up or apart == "priority" else _without_parts(figures)


def fell(before: Mapping[Key, float], after: Mapping[Key, float]) -> bool:
    """Whether any of the counters *before* stands lower *after*, or is gone: a restart."""
    return any(_lower(after.get(key, 0.0), value) for key, value in before.items())


def _lower(after: float, before: float) -> bool:
    # The sums of many processes are added up in no fixed order: the last digits may differ.
    return after < before and not math.isclose(after, before, rel_tol=1e-12)


def _without(key: Key, names: frozenset[str]) -> Key:
    return frozenset(pair for pair in key if pair[0] not in names)


def _of_one_rank(group: list[Sample], ranks: list[str], adds_up: bool) -> float:  # noqa: FBT001
    if len(group) == 1:
        return group[0].value
    first = min(_rank_order(one, ranks) for one in group)
    values = [one.value for one in group if _rank_order(one, ranks) == first]
    return sum(values) if adds_up else max(values)


def _rank_order(sample: Sample, ranks: list[str]) -> list[tuple[bool, int, str]]:
    """Rank 0 first, then by number."""
    values = [sample.labels.get(rank, "") for rank in ranks]
    return [(value != "0", len(value), value) for value in values]


def _without_parts(figures: dict[Key, float]) -> dict[Key, float]:
    """*figures* without those of a single priority whose total is there too."""
    whole = {key for key in figures if not dict(key).get("priority")}
    priority = frozenset(("priority",))
    totals = {_without(key, priority) for key in whole}
    return {
        key: value
        for key, value in figures.items()
        if key in whole or _without(key, priority) not in totals
    }
