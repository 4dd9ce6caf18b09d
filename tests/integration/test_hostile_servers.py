import asyncio
import subprocess
import sys
import time
import zlib

import orjson
import pytest

from app.clients.collector import collect
from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Bundle, Outcome
from app.domain.phases import Plan
from app.domain.redaction import keyed_fingerprint
from tests.integration.scripted_target import answers, scripted_target
from tests.integration.shared_tools import needs, tool

pytestmark = pytest.mark.slow

FINGERPRINT = keyed_fingerprint(b"a key of this test")
TOKEN = "user-secret-token-1"
# How /model_info ends in each mode of the hostile server.
MODES = {
    "ok": Outcome.ANSWERED,
    "big": Outcome.REJECTED,
    "drip": Outcome.TIMEOUT,
    "sseforever": Outcome.TIMEOUT,
    "slowheader": Outcome.TIMEOUT,
    "redirmeta": Outcome.REJECTED,
    "redirfile": Outcome.REJECTED,
    "redirother": Outcome.REJECTED,
    "redirloop": Outcome.REJECTED,
    "gzipbomb": Outcome.REJECTED,
    "brokenlen": Outcome.ERROR,
    "closemid": Outcome.ERROR,
    "badchunk": Outcome.ERROR,
    "http09": Outcome.ERROR,
    "crlfheader": Outcome.REJECTED,
    "hugeheader": Outcome.REJECTED,
    "manyheaders": Outcome.REJECTED,
    "deep": Outcome.REJECTED,
    "bigint": Outcome.REJECTED,
    "nan": Outcome.REJECTED,
    "badutf8": Outcome.REJECTED,
    "xss": Outcome.ANSWERED,
}
# What does not end by itself uses the deadline up; all else has time even on a busy machine.
DEADLINE_SECONDS = {Outcome.TIMEOUT: 1.2}


def test_an_endless_body_ends_at_the_cap_or_at_the_deadline() -> None:
    with tool("hostile_server.py", "neverend") as base_url:
        model = collected(base_url).capture("model_info")
    assert model
    assert model.outcome in (Outcome.REJECTED, Outcome.TIMEOUT)
    assert len(model.body) <= 65_536


def collected(base_url: str, deadline_seconds: float = 1.2) -> Bundle:
    async def run() -> Bundle:
        address = TargetAddress(base_url, TOKEN)
        async with TargetClient(address, fingerprint=FINGERPRINT) as client:
            plan = Plan("never", 0, deadline_seconds)
            return await collect(client, plan, decide=lambda _: "unknown")

    return asyncio.run(run())


@pytest.mark.parametrize("mode", MODES)
def test_a_hostile_server_costs_the_deadline_at_most_and_every_answer_is_told(mode: str) -> None:
    deadline_seconds = DEADLINE_SECONDS.get(MODES[mode], 12.0)
    with tool("hostile_server.py", mode) as base_url:
        start = time.monotonic()
        bundle = collected(base_url, deadline_seconds)
        taken = time.monotonic() - start
    model = bundle.capture("model_info")
    assert model
    assert model.outcome is MODES[mode]
    assert model.detail or model.outcome is Outcome.ANSWERED
    assert taken < 12.0 + 0.6
    assert TOKEN not in repr(bundle)
    for capture in bundle.captures:
        orjson.dumps([capture.detail, capture.headers, capture.redacted])
        assert len(capture.body) <= 16 * 1024 * 1024


def gzip_bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(megabytes)) + packer.flush()


def test_a_gzip_bomb_is_not_unpacked() -> None:
    bomb = answers(gzip_bomb(64), headers="Content-Encoding: gzip\r\n")
    with scripted_target({}, otherwise=bomb) as target:
        bundle = collected(target.base_url, 50)
    asked = [one for one in bundle.captures if one.outcome is not Outcome.NOT_ASKED]
    assert {one.outcome for one in asked} == {Outcome.REJECTED}
    assert {one.body for one in asked} == {b""}


COLLECT_AND_TELL_MEMORY = """
import asyncio, resource, sys
from app.clients.collector import collect
from app.clients.target import TargetAddress, TargetClient
from app.domain.phases import Plan
async def run():
    async with TargetClient(TargetAddress(sys.argv[1]), fingerprint=lambda _: "00000000") as one:
        await collect(one, Plan("never", 0, 3), decide=lambda _: "unknown")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
asyncio.run(run())
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("mode", ["gzipbomb", "big", "neverend"])
def test_memory_stays_bounded_however_much_is_sent(mode: str) -> None:
    needs("tools", "hostile_server.py")
    with tool("hostile_server.py", mode) as base_url:
        command = [sys.executable, "-c", COLLECT_AND_TELL_MEMORY, base_url]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert int(told.stdout) < 120
