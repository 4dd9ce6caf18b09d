"""A hundred thousand outcomes: what it costs to record them, and to look at a page of them."""

import time
from pathlib import Path

import pytest
from sqlmodel import select

from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Recorded
from app.settings import Settings
from app.store import migrations, replay_rows
from app.store.database import reading, writing
from app.store.replay_rows import Wanted
from app.store.replays import NewReplay
from app.store.stores import Stores
from app.store.tables import ReplayOutcome
from tests.benchmarks.table import row
from tests.integration import make
from tests.integration.replayed import asked, clean_target, line

pytestmark = pytest.mark.benchmark

OUTCOMES, BATCH = 100_000, 1000
MOST_PAGE_MS = 100.0
MOST_MS_EACH = 0.15  # of CPU, far below what sending one takes
RECORDED = Recorded("finished", 1000, 100, 0, 0.1, 2.0, "stop")


def _outcome(index: int) -> Outcome:
    error = "stream-cut" if index % 50 == 0 else None
    return Outcome(
        index, f"{index:032x}", 200, error, None, 1.7e9 + index / 100, index / 100, 0.7,  # type: ignore[arg-type]
        lag_ms=0.2, ttft_seconds=0.1, e2e_seconds=2.0, prompt_tokens=1000, completion_tokens=100,
        cached_tokens=0, finish_reason="stop", output_characters=400, output_hash="ab" * 8,
        inter_token_p50_ms=20.0, inter_token_p99_ms=30.0, frames=100,
    )  # fmt: skip


def test_a_hundred_thousand_outcomes_are_recorded_and_a_page_of_them_is_quick(
    tmp_path: Path,
) -> None:
    stores = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(stores.engine)
    target = clean_target(stores, "http://127.0.0.1:9", "clean-a")
    replay_id, _ = asked(stores, NewReplay(make.incident(stores), target.id or 0), line(0))
    started = time.process_time()
    for first in range(0, OUTCOMES, BATCH):
        batch = [(_outcome(n), RECORDED) for n in range(first, first + BATCH)]
        with writing(stores.engine) as session:
            replay_rows.put_outcomes(session, replay_id, 1, batch)
    each_ms = (time.process_time() - started) * 1000 / OUTCOMES
    row("100,000 outcomes of a replay, recorded", f"{each_ms:.3f} CPU ms each",
        f"≤ {MOST_MS_EACH:g} ms")  # fmt: skip

    slowest = max(_page_ms(stores, replay_id, wanted, after) for wanted, after in _LOOKS)
    row("a page of 100 of them, the slowest filter", f"{slowest:.1f} ms", f"≤ {MOST_PAGE_MS:g} ms")
    with reading(stores.engine) as session:
        assert len(session.exec(select(ReplayOutcome.position)).all()) == OUTCOMES
    stores.close()

    assert slowest <= MOST_PAGE_MS
    assert each_ms <= MOST_MS_EACH


_LOOKS = [
    (Wanted(), None),
    (Wanted(), (1, OUTCOMES - 200)),
    (Wanted(trial=1, state="completed"), (1, OUTCOMES // 2)),
    (Wanted(state="failed"), None),
    (Wanted(error="stream-cut"), (1, OUTCOMES // 2)),
    (Wanted(error="tls-failed"), None),
    (Wanted(trial=2), None),
]


def _page_ms(
    stores: Stores, replay_id: int, wanted: Wanted, after: replay_rows.Place | None
) -> float:
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        with reading(stores.engine) as session:
            replay_rows.outcomes_of(session, replay_id, wanted, after=after, limit=100)
        taken.append((time.perf_counter() - started) * 1000)
    return min(taken)
