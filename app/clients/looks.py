"""Looks at the target of a replay, without harm, before and after."""

import asyncio
import time

from app.clients.collector import collect
from app.clients.target import TargetAddress, TargetClient
from app.domain.observed import Observed, observe
from app.domain.phases import Plan
from app.domain.redaction import Fingerprint
from app.domain.replay.guards import strangers
from app.domain.replay.target import loads_of

# Two looks a second apart tell whether work moves. A probe, asked only where that does not
# decide it, takes up to 22 s.
_BEFORE = Plan("never", 0.0, 20.0)
_AFTER = Plan("auto", 1.0, 45.0)
_SETTLES_SECONDS = 10.0
_AGAIN_SECONDS = 0.5


def before(address: TargetAddress, fingerprint: Fingerprint) -> Observed:
    """The target as it is now; no token is asked for."""
    return _look(address, _BEFORE, fingerprint)


def after(address: TargetAddress, fingerprint: Fingerprint) -> Observed:
    """The target as it is left; asks for one token where it cannot be told otherwise."""
    return _look(address, _AFTER, fingerprint)


def settled(address: TargetAddress, fingerprint: Fingerprint) -> Observed:
    """The target once nothing runs on it any more, or as it is after ten seconds.

    What was broken off leaves the scheduler a moment later; it would be taken for others' work.
    """
    until = time.monotonic() + _SETTLES_SECONDS
    seen = before(address, fingerprint)
    while strangers(loads_of(seen)) and time.monotonic() < until:
        time.sleep(_AGAIN_SECONDS)
        seen = before(address, fingerprint)
    return seen


def _look(address: TargetAddress, plan: Plan, fingerprint: Fingerprint) -> Observed:
    async def look() -> Observed:
        async with TargetClient(address, fingerprint=fingerprint) as client:
            return observe(await collect(client, plan))

    return asyncio.run(look())
