"""How fast a scrape is read, in CPU time of this process; peers are measured in the same run."""

import random
import time
from collections.abc import Callable, Iterator
from itertools import accumulate, count

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.domain.exposition import parse

pytestmark = pytest.mark.benchmark

BOUNDS = ("0.1", "0.5", "1.0", "2.5", "5.0", "10.0", "20.0", "40.0", "80.0", "160.0", "+Inf")
GAUGES = ("num_running_reqs", "num_queue_reqs", "token_usage", "gen_throughput", "cache_hit_rate")
COUNTERS = ("num_requests_total", "prompt_tokens_total", "generation_tokens_total")
HISTOGRAMS = (
    "time_to_first_token_seconds",
    "e2e_request_latency_seconds",
    "inter_token_latency_seconds",
    "queue_time_seconds",
    "per_stage_req_latency_seconds",
)


def cpu_seconds(work: Callable[[], object], *, rounds: int = 3) -> float:
    """The least of *rounds*: what the work needs when nobody else is in the caches."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def tell(measured: str) -> None:
    print(measured)  # noqa: T201 - shown with -s, and beside a failure


def rank_lines(rank: int, chance: random.Random) -> Iterator[str]:
    labels = (
        f'engine_type="unified",model_name="acme/large-instruct",moe_ep_rank="{rank % 8}",'
        f'pp_rank="0",tp_rank="{rank % 8}",dp_rank="{rank // 8}"'
    )
    for name in GAUGES:
        yield f"sglang:{name}{{{labels}}} {chance.choice(['0.0', 'NaN', '1.5e+06', '0.25'])}"
    for name in COUNTERS:
        yield f"sglang:{name}{{{labels}}} {float(chance.randrange(10**8))}"
    for name in HISTOGRAMS:
        counts = list(accumulate(chance.randrange(900) for _ in BOUNDS))
        for bound, up_to in zip(BOUNDS, counts, strict=True):
            yield f'sglang:{name}_bucket{{le="{bound}",{labels}}} {float(up_to)}'
        yield f"sglang:{name}_count{{{labels}}} {float(counts[-1])}"
        yield f"sglang:{name}_sum{{{labels}}} {counts[-1] * chance.random()}"


def scrape(size_bytes: int) -> bytes:
    """A scrape of an engine with as many ranks as it takes; each rank's lines together."""
    chance, lines, size = random.Random(3), ["# TYPE sglang:token_usage gauge"], 0
    for rank in count():
        if size >= size_bytes:
            break
        added = list(rank_lines(rank, chance))
        lines += added
        size += sum(len(line) + 1 for line in added)
    return "\n".join(lines).encode()


def test_a_large_scrape_takes_a_tenth_of_a_second_and_a_fifth_of_the_usual_parser() -> None:
    text = scrape(1_300_000)
    ours = cpu_seconds(lambda: parse(text))
    theirs = cpu_seconds(lambda: list(text_string_to_metric_families(text.decode())))
    tell(f"1.3 MB: {ours:.3f} CPU s, {theirs / ours:.1f} times as fast as prometheus_client")
    assert ours <= 0.1
    assert theirs / ours >= 5


def test_a_huge_scrape_takes_a_second_and_is_linear() -> None:
    small, large = scrape(1_000_000), scrape(10_000_000)
    ratio = cpu_seconds(lambda: parse(large)) / cpu_seconds(lambda: parse(small))
    tell(f"10 MB: {ratio:.1f} times as long as 1 MB")
    assert cpu_seconds(lambda: parse(large)) <= 1
    assert ratio <= 20


def test_wanted_families_alone_take_a_third_of_the_time() -> None:
    text = scrape(10_000_000)
    wanted = ("sglang:num_running_reqs", "sglang:token_usage", "sglang:prompt_tokens_total")
    ratio = cpu_seconds(lambda: parse(text)) / cpu_seconds(lambda: parse(text, wanted=wanted))
    tell(f"10 MB: {ratio:.1f} times as fast with three families wanted")
    assert ratio >= 3


def test_a_label_block_that_never_ends_is_linear() -> None:
    short, long = (b"x 1\nx{" + b"a" * size + b"} 1\n" for size in (200_000, 2_000_000))
    ratio = cpu_seconds(lambda: parse(long), rounds=9) / cpu_seconds(lambda: parse(short), rounds=9)
    tell(f"200 kB label block: {cpu_seconds(lambda: parse(short)) * 1000:.1f} ms, x10: {ratio:.1f}")
    assert cpu_seconds(lambda: parse(short)) <= 0.05
    assert ratio <= 30  # quadratic would be 100
