"""Collect a bundle: each phase of the collector is one slice, each capture a row as it lands.

What has landed is not asked for again: after a crash or a resume the next phase follows from
the rows. A target is asked at most once more for what was in flight.
"""

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.clients.collector import Collection
from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Capture, Outcome
from app.domain.phases import Ask, Phase, Plan
from app.domain.playbook import CollectBundle
from app.jobs.work import Work
from app.store import attempts, jobs, landing
from app.store.audit import CONSOLE
from app.store.bundles import captures_of, load_captures, open_bundle
from app.store.database import reading, writing
from app.store.tables import BundleRow, Job
from app.store.targets import address, get_target
from app.store.turns import take_turn

PROBES = frozenset(("health", "health_generate"))
SENT = "Sent; no answer was seen so far."
WAIT_SECONDS = 0.5
USUAL_CAPTURES = 10  # of a present server; the bar of the job page is drawn against it


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a slice begins."""

    bundle_id: int
    address: TargetAddress
    plan: Plan
    done: dict[str, Capture]


def collect(work: Work) -> bool:
    """Run the next phase, or complete the bundle; whether there is more to do."""
    if rival := _rival(work):
        work.tell(f"Stacks of this target are taken by job {rival.id}; waiting for it.")
        time.sleep(WAIT_SECONDS)
        return True
    return asyncio.run(_collect(work, _start(work)))


def _rival(work: Work) -> Job | None:
    """The job that has its turn on the target; None: it is ours."""
    with writing(work.stores.engine) as session:
        return take_turn(session, work.attempt, at=datetime.now(UTC))


async def _collect(work: Work, start: _Start) -> bool:
    stores = work.stores
    async with TargetClient(start.address, fingerprint=stores.vault.fingerprint) as client:
        spent = asking_seconds(start.done.values())
        collection = Collection(client, start.plan, dict(start.done), spent_seconds=spent)
        phase = collection.next_phase()
        if phase is None:
            await asyncio.to_thread(_complete, work, start.bundle_id, collection)
            return False
        with ThreadPoolExecutor(max_workers=1) as writer:
            landed = _write_down(work, start, collection, writer)
            await work.unless_stopped(_run(work, collection, phase))
        for capture in landed:
            capture.result()
    return True


def _start(work: Work) -> _Start:
    step = CollectBundle(**work.job.arguments)
    with writing(work.stores.engine) as session:
        target = get_target(session, step.target_id)
        bundle = open_bundle(session, work.job, target, step, at=datetime.now(UTC))
        assert bundle.id is not None
        rows = captures_of(session, bundle.id)
    done = {one.name: one for one in load_captures(work.stores.artifacts, rows)}
    return _Start(
        bundle.id,
        address(target, work.stores.vault, work.stores.settings),
        Plan(probe=step.probe, interval_seconds=step.interval_seconds),
        done,
    )


def _write_down(
    work: Work, start: _Start, collection: Collection, writer: ThreadPoolExecutor
) -> list[Future[None]]:
    """Have each capture written as it lands, by a thread: the clock of the others runs on.

    A probe is written down before it is sent: cut off while it waits, it is not sent again.
    """
    pending: list[Future[None]] = []

    def landed(capture: Capture) -> None:
        position = len(collection.done)
        pending.append(writer.submit(_land, work, start.bundle_id, capture, position))

    def started(ask: Ask) -> None:
        if ask.endpoint.name in PROBES:
            sent = Capture(ask.endpoint.name, ask.endpoint.path, Outcome.ERROR, detail=SENT)
            dated = replace(sent, started_at=collection.client.now())
            position = len(collection.done)
            writer.submit(_land, work, start.bundle_id, dated, position).result()

    collection.landed, collection.started = landed, started
    return pending


def _land(work: Work, bundle_id: int, capture: Capture, position: int) -> None:
    body = work.stores.artifacts.put(capture.body) if capture.body else None
    with writing(work.stores.engine) as session:
        landing.land(session, bundle_id, capture, body, position=position)
        attempts.progress(
            session,
            work.attempt,
            f"{capture.path}: {capture.outcome}.",
            done=position,
            total=max(position, USUAL_CAPTURES),
        )


async def _run(work: Work, collection: Collection, phase: Phase) -> None:
    if wait_seconds := collection.wait_seconds(phase):
        says = f"Waiting {wait_seconds:.0f} s for the second scrape."
        await asyncio.to_thread(work.tell, says)
        # Told first, then waited: the interval is counted from the first scrape anyway.
        await asyncio.sleep(collection.wait_seconds(phase))
    await collection.run(phase)


def _complete(work: Work, bundle_id: int, collection: Collection) -> None:
    """Summarise, archive, and tell incident and target: all of it or nothing."""
    stores, bundle, now = work.stores, collection.bundle(), datetime.now(UTC)
    with reading(stores.engine) as session:
        row = session.get_one(BundleRow, bundle_id)
        target = get_target(session, row.target_id) if row.target_id else None
        baseline = landing.baseline_of(session, target)
    made = landing.whole(stores.artifacts, bundle, baseline=baseline)
    with writing(stores.engine) as session:
        job = attempts.held(session, work.attempt)
        row = session.get_one(BundleRow, bundle_id)
        landing.complete(session, row, made, at=now)
        landing.keep_archive(
            session,
            row,
            made.archive,
            actor=CONSOLE,
            at=now,
            name=f"bundle-{bundle_id}.zip",
            taken_from=f"target {target.name}" if target else row.base_url,
            tier=landing.TIER,
            media_type="application/zip",
        )
        landing.take_in_target(session, row)
        landing.tell(session, row, actor=CONSOLE, at=now)
        job.result = {"bundle_id": bundle_id}
        job.done = job.total = len(bundle.captures)
        jobs.succeeded(session, job, "The bundle is whole.", at=now)


def asking_seconds(captures: Iterable[Capture]) -> float:
    """For how long at least one question was open: what the deadline counts."""
    spans = sorted(
        (one.started_at.timestamp(), one.started_at.timestamp() + one.seconds)
        for one in captures
        if one.started_at is not None and one.seconds is not None
    )
    total, until = 0.0, float("-inf")
    for begin, end in spans:
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total
