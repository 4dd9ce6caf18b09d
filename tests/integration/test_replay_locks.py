"""What writes for a replay in one moment waits for one another in one order."""

from threading import Thread

import pytest
from sqlalchemy import text

from app.domain.replay.planned import Recorded
from app.store import attempts, replay_progress
from app.store.attempts import Attempt
from app.store.database import reading, writing
from app.store.replay_progress import Counts
from app.store.replays import NewReplay
from app.store.stores import Stores
from app.store.tables import ReplayTrial
from tests.integration import make
from tests.integration.replayed import asked, clean_target, job_of, line
from tests.replays import outcome
from tests.waiting import until

_WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")


def _one_waits(stores: Stores) -> bool:
    with reading(stores.engine) as session:
        return bool(session.execute(_WAITING).scalar())


def test_outcomes_that_land_while_a_trial_is_noted_wait_and_are_written(any_stores: Stores) -> None:
    if any_stores.engine.dialect.name != "postgresql":
        pytest.skip("SQLite lets one write at a time")
    target = clean_target(any_stores, "http://127.0.0.1:9", "clean-a")
    new = NewReplay(make.incident(any_stores), target.id or 0)
    replay_id, _ = asked(any_stores, new, line(0))
    job = job_of(any_stores, replay_id)
    attempt = Attempt(job.id or 0, job.key)
    with writing(any_stores.engine) as session:
        attempts.claim(session, attempt, worker="w", places={"replays": 1}, at=make.now())
    trial = replay_progress.trial_of(any_stores, attempt, replay_id, 1, "A")
    counts = Counts()
    counts.see(outcome(0))
    pairs = [(outcome(0), Recorded("finished"))]
    landing = Thread(
        target=replay_progress.land, args=(any_stores, attempt, trial, pairs, counts), daemon=True
    )

    with writing(any_stores.engine) as session:
        attempts.held(session, attempt)
        landing.start()
        until(lambda: _one_waits(any_stores))
        session.get_one(ReplayTrial, trial.id).state = "running"
    landing.join()

    with reading(any_stores.engine) as session:
        row = session.get_one(ReplayTrial, trial.id)
    assert (row.state, row.sent) == ("running", 1)
