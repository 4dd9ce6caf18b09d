"""Load of each DP rank, from /v1/loads (0.5.9 and later) or /get_load (0.4.9 to 0.5.17).

Since 0.5.13 /v1/loads reads a snapshot that the scheduler left in shared memory: it answers
200 even over a dead scheduler, so every figure carries its age. Before, it asked the
scheduler itself, so an answer is alive by nature and has no age.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.figures import (
    complete_total,
    epoch_seconds,
    figure,
    rounded,
    table,
    text,
    whole,
)

STALE_SECONDS = (
    5.0  # a scheduler that loops publishes within milliseconds, a loaded one within 15 steps
)
_CLOCK_SLACK_SECONDS = 1.0
MOST_RANKS = 1024  # a hostile answer may name a hundred thousand
_DECODE_MOMENTS = 6  # Σ1, Σb, Σt (µs), Σb², Σb·t, Σ generated tokens


@dataclass(frozen=True, slots=True)
class RankLoad:
    """One DP rank at one moment. None is what its version does not tell."""

    dp_rank: int
    place: str  # JSON pointer into the answer
    running: int | None = None
    waiting: int | None = None
    token_usage: float | None = None  # share of KV tokens in use, 0 to 1
    throughput: float | None = None  # tokens/s as told; the last value stays when decoding stops
    cache_hit_rate: float | None = None  # of the last prefill batch only
    published_at: float | None = None  # epoch seconds of the scheduler's snapshot
    age_seconds: float | None = None
    used_tokens: int | None = None
    capacity_tokens: int | None = None
    max_running: int | None = None
    prefill_tokens_total: int | None = None  # cumulative, uncached tokens
    prefill_busy_us_total: int | None = None  # cumulative, microseconds
    decode_moments: tuple[float, ...] | None = None  # cumulative, see _DECODE_MOMENTS
    memory: Mapping[str, Any] | None = None
    queues: Mapping[str, Any] | None = None
    disaggregation: Mapping[str, Any] | None = None
    speculative: Mapping[str, Any] | None = None

    @property
    def has_work(self) -> bool | None:
        """Whether requests run or wait; None while that is not known."""
        if self.running or self.waiting:
            return True
        return False if self.running == 0 and self.waiting == 0 else None

    @property
    def decode_passes_total(self) -> float | None:
        return self._moment(0)

    @property
    def decode_tokens_total(self) -> float | None:
        return self._moment(-1)

    def _moment(self, index: int) -> float | None:
        """A cumulative sum; null moments beside a prefill counter mean: none decoded yet."""
        if self.decode_moments:
            return self.decode_moments[index]
        return 0.0 if self.prefill_tokens_total is not None else None


@dataclass(frozen=True, slots=True)
class Loads:
    """One answer about the load of all ranks."""

    artifact: str
    ranks: tuple[RankLoad, ...]
    asked_at: float | None = None  # epoch seconds, by the server's clock
    version: str | None = None
    live: bool = False  # the scheduler itself answered, no snapshot
    ranks_told: int | None = None  # how many ranks the server says it has
    problems: tuple[str, ...] = ()

    def total(self, name: str, expected: int | None) -> int | None:
        """Our own sum of *name* over ranks; None unless all *expected* ranks are known."""
        values = [getattr(rank, name) for rank in self.ranks]
        wanted = expected if expected is not None else self.ranks_told
        if wanted is None and self.ranks:
            wanted = max(rank.dp_rank for rank in self.ranks) + 1
        return complete_total(values, wanted)

    @property
    def oldest_seconds(self) -> float | None:
        """Age of the oldest snapshot; None unless every rank has one."""
        ages = [rank.age_seconds for rank in self.ranks]
        known = [age for age in ages if age is not None]
        return max(known) if known and len(known) == len(ages) else None

    @property
    def youngest_seconds(self) -> float | None:
        """Age of the newest snapshot; None unless every rank has one."""
        ages = [rank.age_seconds for rank in self.ranks]
        known = [age for age in ages if age is not None]
        return min(known) if known and len(known) == len(ages) else None


def read_loads(artifact: str, value: object) -> Loads | None:
    """The answer *value* of /v1/loads or /get_load; None when it is neither."""
    if isinstance(value, list):
        return _old_loads(artifact, value)
    envelope = table(value)
    told = envelope.get("loads")
    if not isinstance(told, list):
        return None
    entries = told[:MOST_RANKS]
    asked_at = epoch_seconds(envelope.get("timestamp"))
    ranks = [_rank(i, table(entry), asked_at) for i, entry in enumerate(entries)]
    skewed = [
        rank.dp_rank for rank, entry in zip(ranks, entries, strict=True) if _ahead(rank, entry)
    ]
    problems = tuple(
        f"The snapshot of rank {rank} is from the future: clocks differ." for rank in skewed
    )
    return Loads(
        artifact=artifact,
        ranks=_one_each(ranks),
        asked_at=asked_at,
        version=text(envelope.get("version"), limit=60),
        live="aggregate" in envelope or "dp_rank_count" in envelope,
        ranks_told=len(told) if told[MOST_RANKS:] else whole(envelope.get("dp_rank_count")),
        problems=problems,
    )


def _ahead(rank: RankLoad, entry: object) -> bool:
    return (
        rank.age_seconds is None and rank.published_at is not None and "timestamp" in table(entry)
    )


def _one_each(ranks: list[RankLoad]) -> tuple[RankLoad, ...]:
    """Ranks in order, each once: a repeated rank would be counted twice in a total."""
    by_rank = {rank.dp_rank: rank for rank in ranks}
    return tuple(by_rank[number] for number in sorted(by_rank))


def _rank(index: int, entry: Mapping[str, Any], asked_at: float | None) -> RankLoad:
    own = whole(entry.get("dp_rank"))
    published_at = epoch_seconds(entry.get("timestamp"))
    return RankLoad(
        dp_rank=index if own is None else own,
        place=f"/loads/{index}",
        running=_count(entry.get("num_running_reqs")),
        waiting=_count(entry.get("num_waiting_reqs")),
        token_usage=figure(entry.get("token_usage")),
        throughput=figure(entry.get("gen_throughput")),
        cache_hit_rate=figure(entry.get("cache_hit_rate")),
        published_at=published_at,
        age_seconds=_age(asked_at, published_at),
        used_tokens=_count(entry.get("num_used_tokens")),
        capacity_tokens=_count(entry.get("max_total_num_tokens")),
        max_running=_count(entry.get("max_running_requests")),
        prefill_tokens_total=_count(entry.get("total_prefill_uncached_tokens")),
        prefill_busy_us_total=_count(entry.get("total_prefill_busy_us")),
        decode_moments=_moments(entry.get("decode_moments")),
        memory=_section(entry, "memory"),
        queues=_section(entry, "queues"),
        disaggregation=_disaggregation(entry),
        speculative=_section(entry, "speculative"),
    )


def _count(value: object) -> int | None:
    number = whole(value)
    return number if number is not None and number >= 0 else None


def _age(asked_at: float | None, published_at: float | None) -> float | None:
    """Seconds between both; a little negative is 0, more is a difference of clocks: unknown."""
    if asked_at is None or published_at is None:
        return None
    age = asked_at - published_at
    return None if age < -_CLOCK_SLACK_SECONDS else round(max(age, 0.0), 3)


def _moments(value: object) -> tuple[float, ...] | None:
    """The six sums; null means that this rank has not decoded yet, or an old version."""
    if not isinstance(value, list) or len(value) != _DECODE_MOMENTS:
        return None
    moments = tuple(number for one in value if (number := figure(one)) is not None)
    return moments if len(moments) == _DECODE_MOMENTS else None


def _section(entry: Mapping[str, Any], name: str) -> dict[str, int | float | str | None] | None:
    section = entry.get(name)
    if not isinstance(section, Mapping):
        return None
    return {str(key)[:60]: _plain(value) for key, value in section.items()}


def _plain(value: object) -> int | float | str | None:
    number = figure(value)
    if number is None:
        return text(value, limit=60)
    return int(number) if number.is_integer() and isinstance(value, int) else number


def _disaggregation(entry: Mapping[str, Any]) -> dict[str, int | float | str | None] | None:
    """The section under its names since 0.5.10 or so; 0.5.9 said prealloc for bootstrap."""
    section = _section(entry, "disaggregation")
    if section and "prefill_prealloc_queue_reqs" in section:
        section["prefill_bootstrap_queue_reqs"] = section.pop("prefill_prealloc_queue_reqs")
    return section


def _old_loads(artifact: str, entries: Sequence[Any]) -> Loads | None:
    """/get_load: ``num_reqs`` counts the waiting ones too."""
    if not all(isinstance(entry, Mapping) and "num_reqs" in entry for entry in entries):
        return None
    ranks = []
    for index, entry in enumerate(entries[:MOST_RANKS]):
        own, everything = whole(entry.get("dp_rank")), _count(entry.get("num_reqs"))
        waiting = _count(entry.get("num_waiting_reqs"))
        known = everything is not None and waiting is not None and everything >= waiting
        ranks.append(
            RankLoad(
                dp_rank=index if own is None else own,
                place=f"/{index}",
                running=everything - waiting if known else None,  # type: ignore[operator]
                waiting=waiting,
                used_tokens=_count(entry.get("num_tokens")),
            )
        )
    return Loads(artifact, _one_each(ranks), live=True)


def rank_json(rank: RankLoad, *, believed: bool, measured: float | None) -> dict[str, Any]:
    """The rank for a summary. A told throughput counts only while the rank is *believed* alive."""
    told = rank.throughput if believed else None
    return {
        "dp_rank": rank.dp_rank,
        "running": rank.running,
        "waiting": rank.waiting,
        "token_usage": rank.token_usage,
        "throughput": rounded(measured, 2) if measured is not None else told,
        "throughput_from": "window"
        if measured is not None
        else "told"
        if told is not None
        else None,
        "throughput_told": rank.throughput,
        "cache_hit_rate": rank.cache_hit_rate,
        "age_seconds": rank.age_seconds,
        "used_tokens": rank.used_tokens,
        "capacity_tokens": rank.capacity_tokens,
        "max_running": rank.max_running,
        "memory": rank.memory,
        "queues": rank.queues,
        "disaggregation": rank.disaggregation,
        "speculative": rank.speculative,
    }
