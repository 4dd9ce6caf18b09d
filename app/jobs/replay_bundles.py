"""Looks at the target of a replay: bundles before, during and after, and its loads at the last.

These bundles belong to no incident: what becomes of a target that serves nobody says nothing of
the servers that the incident is about. Their archives are evidence of it all the same.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import Any, Literal

from app.clients.collector import collect
from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Bundle, Outcome
from app.domain.endpoints import GET_LOAD, LOADS_ALL_1
from app.domain.health import verdict_of
from app.domain.loads import Loads, read_loads
from app.domain.observed import Observed, observe
from app.domain.phases import Plan, Probe
from app.domain.plain_json import read_json
from app.domain.replay.guards import strangers
from app.errors import Malformed
from app.jobs.work import Work
from app.store import evidence, landing
from app.store.audit import CONSOLE
from app.store.database import reading, writing
from app.store.tables import BundleRow, Target
from app.store.targets import address

When = Literal["before", "during", "after"]

SCRAPES_APART_SECONDS = 1.0
LOOKS, LOOKS_APART_SECONDS = 3, 0.3
LINGER_SECONDS = 10.0  # that what we broke off ourselves may stay in the target's loads


@dataclass(frozen=True, slots=True)
class Taken:
    """A bundle that is kept, and what it says."""

    bundle_id: int
    seen: Observed

    @property
    def says(self) -> str:
        return verdict_of(self.seen).says

    @property
    def settings(self) -> Mapping[str, Any]:
        """As the server told them; empty where it did not."""
        return self.seen.info.arguments if self.seen.info else {}


def take_bundle(work: Work, target: Target, name: str, when: When) -> Taken:
    """A bundle of *target*, kept under *name*. Raises what ``Work.check`` raises."""
    probe: Probe = "never" if when == "during" else "auto"
    plan = Plan(probe=probe, interval_seconds=SCRAPES_APART_SECONDS)
    where = address(target, work.stores.vault, work.stores.settings)
    bundle = asyncio.run(_collect(work, where, plan))
    return _keep(work, target, bundle, f"{name}-{when}.zip", serving=when != "during")


def loads_now(work: Work, target: Target, *, patient: bool) -> Loads | None:
    """The load of *target* right now, as it is worst of a few looks; None: it does not tell.

    *patient*: what is there may be what we broke off a moment ago, so it is given time to go.
    """
    where = address(target, work.stores.vault, work.stores.settings)
    until = time.monotonic() + (LINGER_SECONDS if patient else 0.0)
    while True:
        worst = asyncio.run(_worst_load(work, where))
        if not strangers(worst) or time.monotonic() >= until:
            return worst
        work.check()
        time.sleep(LOOKS_APART_SECONDS)


class DuringBundle:
    """A bundle of the target in the middle of a trial, taken by a thread of its own."""

    def __init__(self, after_seconds: float) -> None:
        self._after_seconds = after_seconds
        self._over = Event()

    def over(self) -> None:
        """The trial has ended: what has not begun is not taken."""
        self._over.set()

    def take(self, work: Work, target: Target, name: str) -> Taken | None:
        """None where the trial was over before."""
        if self._over.wait(self._after_seconds):
            return None
        return take_bundle(work, target, name, "during")


async def _collect(work: Work, where: TargetAddress, plan: Plan) -> Bundle:
    collected: list[Bundle] = []
    async with TargetClient(where, fingerprint=work.stores.vault.fingerprint) as client:

        async def all_of_it() -> None:
            collected.append(await collect(client, plan))

        await work.unless_stopped(all_of_it())
    return collected[0]


def _keep(work: Work, target: Target, bundle: Bundle, name: str, *, serving: bool) -> Taken:
    """*serving* False: under our own load it is nothing to compare later bundles with."""
    stores, now = work.stores, datetime.now(UTC)
    with reading(stores.engine) as session:
        baseline = landing.baseline_of(session, session.get(Target, target.id))
    made = landing.whole(stores.artifacts, bundle, baseline=baseline)
    row = BundleRow(
        target_id=target.id,
        job_id=work.job.id,
        base_url=bundle.base_url,
        probe=bundle.probe,
        interval_seconds=SCRAPES_APART_SECONDS,
        collected_at=now,
    )
    with writing(stores.engine) as session:
        landing.complete(session, row, made, at=now)
        artifact = evidence.keep(
            session,
            made.archive,
            incident_id=work.job.incident_id,
            actor=CONSOLE,
            at=now,
            name=name,
            kind=landing.KIND,
            taken_from=f"target {target.name}",
            tier=landing.TIER,
            media_type="application/zip",
            covers_from=row.collected_at,
            covers_to=row.finished_at,
        )
        row.artifact_id = artifact.id
        if serving:
            landing.take_in_target(session, row)
        else:
            row.healthy = False
    assert row.id is not None
    return Taken(row.id, observe(bundle))


async def _worst_load(work: Work, where: TargetAddress) -> Loads | None:
    """A look that shows strangers ends the looking; so does one that tells nothing."""
    async with TargetClient(where, fingerprint=work.stores.vault.fingerprint) as client:
        for look in range(LOOKS):
            if look:
                await asyncio.sleep(LOOKS_APART_SECONDS)
            found = await _load(client)
            if found is None or strangers(found):
                break
        return found


async def _load(client: TargetClient) -> Loads | None:
    for endpoint in (LOADS_ALL_1, GET_LOAD):
        capture = await client.ask(endpoint)
        if capture.outcome is not Outcome.ANSWERED:
            continue
        try:
            return read_loads(endpoint.name, read_json(capture.body))
        except Malformed:
            return None
    return None
