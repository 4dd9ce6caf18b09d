"""Programs that send the same requests to one target: ours, and a bare aiohttp loop.

``python -m tests.benchmarks.replay_clients ours|bare BASE_URL COUNT PER_SECOND [SPEED]``
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from importlib import import_module

import orjson
import uvloop

from app.clients.player import play
from app.clients.target import TargetAddress
from app.domain.replay.options import Options
from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Sending
from app.domain.replay.schedule import Arrival, schedule

IDS = list(range(20_000, 21_000))
TEXT = "word " * 800


def body(index: int) -> bytes:
    """About 10 kB, as a recorded prompt of a thousand tokens is with its text."""
    return orjson.dumps(
        {
            "rid": f"r{index}",
            "text": TEXT,
            "input_ids": IDS,
            "sampling_params": {"max_new_tokens": 16, "temperature": 0.0},
            "stream": True,
        }
    )


def ours(base_url: str, dues: Sequence[float]) -> None:
    failed: list[Outcome] = []

    def take(outcomes: Sequence[Outcome]) -> None:
        failed.extend(one for one in outcomes if one.error or one.completion_tokens != 16)

    sendings = (
        Sending(index, None, due, "/generate", body(index), True) for index, due in enumerate(dues)
    )
    play(sendings, TargetAddress(base_url), Options(), take=take)
    assert not failed, failed[0]


async def bare(base_url: str, dues: Sequence[float]) -> None:
    """As little as a loop with aiohttp can do that reads, stamps and decodes every frame."""
    aiohttp = import_module("aiohttp")  # not installed with the console

    async def send(own: bytes) -> None:
        stamps = []
        async with session.post(f"{base_url}/generate", data=own) as response:
            async for line in response.content:
                if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                    stamps.append(time.monotonic())
                    told = orjson.loads(line[6:])
        assert told["meta_info"]["completion_tokens"] == len(stamps) == 16

    bodies = [body(index) for index in range(len(dues))]
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"Content-Type": "application/json"},
    ) as session:
        start = time.monotonic() + 0.05
        async with asyncio.TaskGroup() as group:
            for own, due in zip(bodies, dues, strict=True):
                ahead = start + due - time.monotonic()
                if ahead > 0:
                    await asyncio.sleep(ahead)
                group.create_task(send(own))


def main(which: str, base_url: str, count: str, per_second: str, speed: str = "1") -> None:
    arrivals = [Arrival(index, index / float(per_second)) for index in range(int(count))]
    slots = schedule(arrivals, Options(speed=float(speed))).slots
    dues = [slot.due_seconds for slot in slots]
    if which == "ours":
        ours(base_url, dues)
    else:
        uvloop.run(bare(base_url, dues))


if __name__ == "__main__":
    main(*sys.argv[1:])
