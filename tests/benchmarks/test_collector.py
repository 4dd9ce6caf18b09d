import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.clients.collector import Collection
from app.clients.target import TargetAddress, TargetClient
from app.domain.phases import Plan
from app.domain.redaction import keyed_fingerprint, redact_body
from tests.integration.scripted_target import answers, scripted_target
from tests.integration.test_cli_bundle import CACHED, console

pytestmark = pytest.mark.benchmark
FINGERPRINT = keyed_fingerprint(b"a key of this benchmark")
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
    text_parse = _cpu_seconds(
        "from prometheus_client.parser import text_string_to_metric_families as parse; "
        "list(parse(text))",
        series,
    )
    start = time.process_time()
    body, places = redact_body(series.encode(), fingerprint=FINGERPRINT)
    taken = time.process_time() - start
    assert (body, places) == (series.encode(), ())
    assert taken <= text_parse / 10


def _cpu_seconds(program: str, text: str) -> float:
    before = "import sys, time; text = sys.stdin.read(); start = time.process_time(); "
    after = "; print(time.process_time() - start)"
    command = [sys.executable, "-c", before + program + after]
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return float(told.stdout)


@pytest.mark.parametrize("arguments", [("--help",), ("bundle", "collect", "--help")], ids=" ".join)
def test_the_command_line_starts_within_600_ms(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert CACHED
    console(*arguments, folder=tmp_path)
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        console(*arguments, folder=tmp_path)
        taken.append(time.perf_counter() - start)
    assert min(taken) <= 0.6
