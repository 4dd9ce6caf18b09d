"""Collects a bundle from a live target without harming it, phase by phase (domain.phases)."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.clients.target import TargetClient
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.health import passive_verdict
from app.domain.ingress import explained
from app.domain.phases import Ask, Decide, Phase, Plan, next_phase, scraped

MADE_BY = "incident-console 0.1.0"
ENDING_SECONDS = 0.05  # of the deadline, for connecting and for giving up what still hangs

Landed = Callable[[Capture], None]


def _ignored(_: object) -> None:
    """For callers that want the bundle and nothing before."""


@dataclass(slots=True)
class Collection:
    """One bundle in the making: run ``next()`` until it says that nothing is left.

    ``done`` may come with captures of an earlier try; those are not made again. ``landed`` is
    told each capture as it comes, ``started`` each endpoint just before it is asked.
    """

    client: TargetClient
    plan: Plan
    done: dict[str, Capture] = field(default_factory=dict)
    landed: Landed = _ignored
    started: Callable[[Ask], None] = _ignored
    decide: Decide = passive_verdict
    spent_seconds: float = 0.0  # of the deadline; waiting for the interval is not counted

    def next_phase(self) -> Phase | None:
        """What comes next; None when the bundle is whole."""
        return next_phase(self.done, self.plan, self.decide)

    def wait_seconds(self, phase: Phase) -> float:
        """How long until *phase* may begin, counted from the first scrape."""
        first = scraped(self.done) if phase.after_interval else None
        if first is None or first.started_at is None:
            return 0.0
        passed = (self.client.now() - first.started_at).total_seconds()
        return min(max(self.plan.interval_seconds - passed, 0.0), self.plan.interval_seconds)

    async def run(self, phase: Phase) -> None:
        """Make the captures of *phase*, those of one phase at the same time."""
        start = time.monotonic()
        left = self.plan.deadline_seconds - ENDING_SECONDS - self.spent_seconds
        for capture in phase.skipped:
            self._land(capture)
        async with asyncio.TaskGroup() as group:
            for ask in phase.asks:
                group.create_task(self._ask(ask, left))
        self.spent_seconds += time.monotonic() - start

    async def _ask(self, ask: Ask, left_seconds: float) -> None:
        if left_seconds <= max(ask.needs_seconds, 0.0):
            self._land(_out_of_time(ask, left_seconds))
            return
        self.started(ask)
        limit = min(ask.timeout_seconds, left_seconds)
        self._land(await self.client.ask(ask.endpoint, timeout_seconds=limit))

    def _land(self, capture: Capture) -> None:
        self.done[capture.name] = capture
        self.landed(capture)

    def bundle(self) -> Bundle:
        """What was captured so far, in the order in which it was asked."""
        return bundle_of(self.done, self.plan, self.client.address.base_url, self.client.now())


async def collect(
    client: TargetClient,
    plan: Plan,
    *,
    done: Mapping[str, Capture] | None = None,
    landed: Landed = _ignored,
    started: Callable[[Ask], None] = _ignored,
    decide: Decide = passive_verdict,
) -> Bundle:
    """The bundle of *client*'s target; takes the deadline and the interval at most."""
    collection = Collection(client, plan, dict(done or {}), landed, started, decide)
    while phase := collection.next_phase():
        await asyncio.sleep(collection.wait_seconds(phase))
        await collection.run(phase)
    return collection.bundle()


def bundle_of(captures: Mapping[str, Capture], plan: Plan, base_url: str, now: datetime) -> Bundle:
    """*captures* as a bundle; *now* is when the last of them was made."""
    started = [one.started_at for one in captures.values() if one.started_at]
    asked_at = {one.name: one.started_at or now for one in captures.values()}
    in_order = sorted(explained(captures), key=lambda one: asked_at[one.name])
    return Bundle(
        base_url=base_url,
        collected_at=min(started, default=now),
        captures=tuple(in_order),
        finished_at=now,
        interval_seconds=plan.interval_seconds,
        probe=plan.probe,
        made_by=MADE_BY,
    )


def _out_of_time(ask: Ask, left_seconds: float) -> Capture:
    needs = f"a probe needs {ask.needs_seconds:.0f} s" if ask.needs_seconds else "none to ask this"
    return replace(
        Capture(ask.endpoint.name, ask.endpoint.path, Outcome.NOT_ASKED),
        detail=f"{max(left_seconds, 0.0):.1f} s of the deadline were left; {needs}.",
    )
