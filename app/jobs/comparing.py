"""What the stacks of a diagnostic say so far: compared after each sample, never in its way."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from app.domain.findings import Conclusion
from app.domain.stack_findings import stack_findings
from app.domain.stacks.compare import compare
from app.domain.stacks.reading import read_files
from app.domain.stacks.samples import Sample
from app.domain.stacks.told import told
from app.jobs.looking import Look
from app.jobs.ras_near import counts_near
from app.jobs.stack_files import gathered
from app.jobs.work import LOOK_SECONDS
from app.store import findings
from app.store.aside import aside
from app.store.database import writing
from app.store.tables import Diagnostic

MOST_SECONDS = 30.0
COMPARED = "compared_items"  # in the answer: of how many items the comparison is

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Compared:
    comparison: dict[str, Any]
    conclusion: Conclusion


def compare_so_far(before: Look) -> None:
    """Compare every sample that is here, unless that is done, and keep it as the answer.

    What goes wrong in it is logged and ends nothing: the samples are the evidence.
    """
    look = Look.open(before.work)
    count = len(look.items)
    if not count or (look.diagnostic.answer or {}).get(COMPARED) == count:
        return
    compared = _in_time(look)
    if compared is None:
        return
    parts = {"comparison": compared.comparison, COMPARED: count}
    with writing(look.work.stores.engine) as session:
        findings.make_of_it(
            session, look.work.attempt, compared.conclusion, at=datetime.now(UTC), **parts
        )


def _in_time(look: Look) -> _Compared | None:
    """The comparison; None where it failed or took too long."""
    future = aside(partial(_compared, look), name="compare stacks")
    deadline = time.monotonic() + MOST_SECONDS
    while not wait([future], LOOK_SECONDS).done:
        look.work.check()
        if time.monotonic() > deadline:
            log.warning("Comparing the stacks of job %s takes too long.", look.work.job.id)
            return None
    if error := future.exception():
        log.error("Comparing the stacks of job %s failed.", look.work.job.id, exc_info=error)
        return None
    return future.result()


def compare_anew(look: Look, diagnostic: Diagnostic) -> None:
    """Compare the stacks of an earlier *diagnostic* again, now that NCCL's counts are here."""
    earlier = Look.at(look.work, diagnostic)
    compared = _in_time(earlier)
    if compared is None or compared.comparison["counted"] is None:
        return
    with writing(look.work.stores.engine) as session:
        findings.tell_anew(
            session,
            look.work.attempt,
            diagnostic.id or 0,
            compared.conclusion,
            at=datetime.now(UTC),
            comparison=compared.comparison,
        )


def _compared(look: Look) -> _Compared:
    here = gathered(look)
    reading = read_files(here.files)
    counts = counts_near(look, reading)
    comparison = compare(reading.samples, reading.missing, counts=counts, states=reading.states)
    document = told(comparison, reading)
    artifacts = _artifacts(reading.samples, here.artifacts)
    seconds = _seconds(reading.samples)
    if comparison.counted and comparison.counted.grew is False:
        seconds = max(seconds or 0.0, comparison.counted.seconds or 0.0)
    return _Compared(document, stack_findings(document, artifacts, seconds))


def _artifacts(samples: tuple[Sample, ...], by_path: Mapping[str, int]) -> dict[str, int]:
    """The file of the last sample of each rank."""
    ordered = sorted(samples, key=lambda one: one.number)
    return {one.rank: by_path[one.path] for one in ordered if one.path in by_path}


def _seconds(samples: tuple[Sample, ...]) -> float | None:
    """From the first to the last sample of the rank where that is least; None: not known."""
    moments: dict[str, list[datetime]] = {}
    for one in samples:
        if one.taken_at is None:
            return None
        moments.setdefault(one.rank, []).append(one.taken_at)
    spans = [(max(those) - min(those)).total_seconds() for those in moments.values()]
    return min(spans, default=None)
