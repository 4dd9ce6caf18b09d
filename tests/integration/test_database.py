"""One short writer, many readers, and times that say where they are."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import text
from sqlalchemy.exc import StatementError

from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Incident
from tests.integration import make


def test_writers_in_the_same_moment_lose_nothing(any_stores: Stores) -> None:
    incident_id = make.incident(any_stores)

    def count(_: int) -> None:
        with writing(any_stores.engine) as session:
            row = session.get_one(Incident, incident_id, with_for_update=True)
            row.artifact_count += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(40)))
    with reading(any_stores.engine) as session:
        assert session.get_one(Incident, incident_id).artifact_count == 40


def test_a_writer_that_fails_leaves_nothing(any_stores: Stores) -> None:
    incident_id = make.incident(any_stores, "before")

    def fail() -> None:
        with writing(any_stores.engine) as session:
            session.get_one(Incident, incident_id).title = "after"
            session.flush()
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    with reading(any_stores.engine) as session:
        assert session.get_one(Incident, incident_id).title == "before"


def test_a_reader_does_not_wait_for_the_writer_and_sees_nothing_unfinished(
    any_stores: Stores,
) -> None:
    incident_id = make.incident(any_stores, "before")
    with writing(any_stores.engine) as session:
        session.get_one(Incident, incident_id).title = "after"
        session.flush()
        with reading(any_stores.engine) as other:
            assert other.get_one(Incident, incident_id).title == "before"


def test_a_time_comes_back_as_the_same_moment_in_utc(any_stores: Stores) -> None:
    incident_id = make.incident(any_stores)
    moment = datetime(2026, 11, 30, 23, 59, 59, 123456, timezone(timedelta(hours=5, minutes=30)))
    with writing(any_stores.engine) as session:
        session.get_one(Incident, incident_id).started_at = moment
    with reading(any_stores.engine) as session:
        kept = session.get_one(Incident, incident_id).started_at
    assert kept == moment
    assert kept is not None
    assert kept.tzinfo == UTC


def test_a_time_without_a_zone_is_refused(any_stores: Stores) -> None:
    incident_id = make.incident(any_stores)
    with writing(any_stores.engine) as session:
        session.get_one(Incident, incident_id).started_at = datetime(2026, 11, 30)  # noqa: DTZ001
        with pytest.raises(StatementError):
            session.flush()
        session.rollback()


def test_what_sqlite_acknowledges_survives_power_loss(any_stores: Stores) -> None:
    if any_stores.engine.dialect.name != "sqlite":
        pytest.skip("a setting of SQLite; PostgreSQL is durable by default")
    with any_stores.engine.connect() as connection:
        told = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert told == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
