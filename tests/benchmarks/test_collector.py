import asyncio
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.clients.collector import Collection, collect
from app.clients.target import TargetAddress, TargetClient
from app.domain.phases import Plan
from app.domain.redaction import keyed_fingerprint, redact_body
from tests.benchmarks import peer
from tests.benchmarks.cpu import cpu_seconds
from tests.benchmarks.table import row
from tests.integration.scripted_target import answers, hangs, says, scripted_target

pytestmark = pytest.mark.benchmark
FINGERPRINT = keyed_fingerprint(b"a key of this benchmark")
DEADLINE_SECONDS = 3.0
DELAYS = {
    "/ready": 0.1,
    "/model_info": 0.5,
    "/metrics": 1.0,
    "/hicache/storage-backend": 0.3,
    "/server_info": 0.6,
    "/v1/loads": 0.4,
}


def test_each_phase_takes_at_most_1_15_of_its_slowest_endpoint() -> None:
    slow = {path: answers(b"{}", delay=delay) for path, delay in DELAYS.items()}
    with scripted_target(slow) as target:
        ratios = asyncio.run(_ratios(target.base_url))
    row("Slowest phase, over its slowest endpoint", f"{max(ratios):.2f} ×", "≤ 1.15 ×")
    assert len(ratios) == 5
    assert max(ratios) <= 1.15


async def _ratios(base_url: str) -> list[float]:
    """The time of each phase that asks, over the delay of its slowest endpoint."""
    ratios = []
    async with TargetClient(TargetAddress(base_url), fingerprint=FINGERPRINT) as client:
        collection = Collection(client, Plan("never", 0), decide=lambda _: "unknown")
        while phase := collection.next_phase():
            before = collection.spent_seconds
            await collection.run(phase)
            slowest = max(
                (DELAYS[ask.endpoint.path.partition("?")[0]] for ask in phase.asks), default=0.0
            )
            if slowest:
                ratios.append((collection.spent_seconds - before) / slowest)
    return ratios


def test_redacting_an_exposition_costs_less_than_a_tenth_of_parsing_it() -> None:
    line = 'sglang:x_seconds_bucket{{engine_type="unified",le="{}",model_name="m"}} 1.0\n'
    series = "".join(line.format(bound) for bound in range(20_000))
    body = series.encode()
    assert redact_body(body, fingerprint=FINGERPRINT) == (body, ())
    ours = cpu_seconds(lambda: redact_body(body, fingerprint=FINGERPRINT))
    reading = cpu_seconds(lambda: list(text_string_to_metric_families(series)))
    beside = f"1/{reading / ours:.0f} of what prometheus_client takes to read it (≤ 1/10)"
    row("20 000 series: looked through for secrets", f"{ours:.3f} CPU s", "", beside)
    assert ours <= reading / 10


@pytest.mark.parametrize("trouble", ["hangs", "drips"])
def test_a_whole_collection_ends_at_its_deadline(trouble: str) -> None:
    drips = says(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n", then=b".", every=0.2)
    with scripted_target({}, otherwise={"hangs": hangs, "drips": drips}[trouble]) as target:
        taken = asyncio.run(_whole_seconds(target.base_url))
    told = f"{taken:.2f} s"
    row(f"Every endpoint {trouble}: whole collection", told, f"≤ {DEADLINE_SECONDS:.0f} s")
    assert taken <= DEADLINE_SECONDS


async def _whole_seconds(base_url: str) -> float:
    start = time.monotonic()
    async with TargetClient(TargetAddress(base_url), fingerprint=FINGERPRINT) as client:
        await collect(client, Plan("never", 0, DEADLINE_SECONDS), decide=lambda _: "unknown")
    return time.monotonic() - start


def test_slow_endpoints_cost_less_than_one_after_the_other(tmp_path: Path) -> None:
    peer.tool()
    slow = {path: answers(b"{}", delay=delay) for path, delay in DELAYS.items()}
    with scripted_target(slow) as target:
        theirs = peer.collect_seconds(target.base_url, tmp_path / "theirs", at_most_seconds=60)
        ours = asyncio.run(_whole_seconds(target.base_url))
    assert theirs is not None
    beside = f"incident_artifact_tool {theirs:.1f} s, with one scrape"
    row("Endpoints of 0.1–1 s: whole collection, two scrapes", f"{ours:.1f} s", "", beside)


def test_a_dripping_endpoint_costs_the_deadline_and_the_public_tool_everything(
    tmp_path: Path,
) -> None:
    peer.tool()
    drips = says(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n", then=b".", every=0.2)
    patience = 4 * DEADLINE_SECONDS
    with scripted_target({"/model_info": drips}, otherwise=answers()) as target:
        ours = asyncio.run(_whole_seconds(target.base_url))
        theirs = peer.collect_seconds(
            target.base_url, tmp_path / "theirs", at_most_seconds=patience
        )
    ended = f"had not ended after {patience:.0f} s" if theirs is None else f"{theirs:.1f} s"
    beside = f"incident_artifact_tool {ended}"
    row(
        "One endpoint drips: whole collection",
        f"{ours:.1f} s",
        f"≤ {DEADLINE_SECONDS:.0f} s",
        beside,
    )
    assert ours <= DEADLINE_SECONDS
