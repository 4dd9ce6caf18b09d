"""How fast a scrape is read, in CPU time of this process; peers are measured in the same run."""

import random
import time
from collections.abc import Iterator
from itertools import accumulate, count

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.domain.bundle import summarise
from app.domain.exposition import parse
from tests import bundles
from tests.benchmarks import peer
from tests.benchmarks.cpu import cpu_seconds
from tests.benchmarks.table import row

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
    beside = f"{theirs / ours:.1f} × as fast as prometheus_client (≥ 5)"
    row("Exposition of 1.3 MB: every sample read", f"{ours:.3f} CPU s", "≤ 0.1", beside)
    assert ours <= 0.1
    assert theirs / ours >= 5


def test_a_large_scrape_is_read_and_summarised_in_a_tenth_of_a_second() -> None:
    bundle = bundles.bundle(bundles.answered("metrics_1", scrape(1_300_000)))
    taken = cpu_seconds(lambda: summarise(bundle))
    row("Exposition of 1.3 MB: read and summarised", f"{taken:.3f} CPU s", "≤ 0.1")
    assert taken <= 0.1


def test_a_large_scrape_is_read_faster_than_by_the_public_tool() -> None:
    text = scrape(1_300_000)
    theirs_parse = peer.metrics_parser()
    ours = cpu_seconds(lambda: parse(text))
    theirs = cpu_seconds(lambda: theirs_parse(text.decode()), rounds=1)
    beside = f"{theirs / ours:.1f} × as fast as incident_artifact_tool"
    row("Exposition of 1.3 MB: every sample read", f"{ours:.3f} CPU s", "", beside)
    assert theirs > ours


def test_a_huge_scrape_takes_a_second_and_is_linear() -> None:
    small, large = scrape(1_000_000), scrape(10_000_000)
    taken = cpu_seconds(lambda: parse(large))
    ratio = taken / cpu_seconds(lambda: parse(small))
    told = f"{taken:.2f} CPU s, {ratio:.1f} × that of 1 MB"
    row("Exposition of 10 MB", told, "≤ 1, linear")
    assert taken <= 1
    assert ratio <= 20


def test_wanted_families_alone_take_a_third_of_the_time() -> None:
    text = scrape(10_000_000)
    wanted = ("sglang:num_running_reqs", "sglang:token_usage", "sglang:prompt_tokens_total")
    ratio = cpu_seconds(lambda: parse(text)) / cpu_seconds(lambda: parse(text, wanted=wanted))
    row("Exposition of 10 MB: three families wanted", f"{ratio:.1f} × as fast as all", "≥ 3 ×")
    assert ratio >= 3


def test_a_label_block_that_never_ends_is_linear() -> None:
    short, long = (b"x 1\nx{" + b"a" * size + b"} 1\n" for size in (200_000, 2_000_000))
    taken = cpu_seconds(lambda: parse(short), rounds=9)
    ratio = cpu_seconds(lambda: parse(long), rounds=9) / taken
    told = f"{taken * 1000:.1f} CPU ms, {ratio:.0f} × that for 2 MB"
    row("Label block of 200 kB", told, "linear (quadratic: 100 ×)")
    assert taken <= 0.05
    assert ratio <= 30


def test_a_million_series_are_cut_and_said_to_be() -> None:
    text = b"\n".join(b'x{rid="%d"} 1' % number for number in range(1_000_000))
    started = time.process_time()
    found = parse(text)
    taken = time.process_time() - started
    kept = len(found.samples["x"])
    row("Exposition of 1 000 000 series", f"{taken:.2f} CPU s, {kept} kept, told", "bounded")
    assert found.truncated
    assert kept <= 200_000
    assert taken <= 3
