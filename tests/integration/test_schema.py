"""The migrations make the schema of tables.py, on both databases, whoever starts first."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text

from app.files import MIGRATIONS
from app.store import migrations
from app.store.database import open_database
from app.store.tables import metadata

pytestmark = pytest.mark.slow

QUERIES = {
    "ix_incident_list": "SELECT * FROM incident WHERE rank < 9 ORDER BY rank, state LIMIT 50",
    "ix_incident_state_changed": "SELECT * FROM incident WHERE state = 'open' "
    "ORDER BY changed_at, id LIMIT 50",
    "ix_timeline_event_incident": "SELECT * FROM timeline_event WHERE incident_id = 7 "
    "ORDER BY occurred_at DESC, id DESC LIMIT 200",
    "ix_job_outbox": "SELECT * FROM job WHERE state = 'queued' AND enqueued_at IS NULL",
    "ix_job_target_state": "SELECT * FROM job WHERE target_id = 7 AND state = 'running'",
    "ix_bundle_target": "SELECT * FROM bundle WHERE target_id = 7 ORDER BY collected_at DESC",
    "ix_artifact_sha256": "SELECT * FROM artifact WHERE sha256 = 'ab'",
    "ix_capture_sha256": "SELECT * FROM capture WHERE sha256 = 'ab'",
    "ix_dump_request_prompt": "SELECT * FROM dump_request WHERE dump_id = 7 AND prompt_tokens "
    "IS NOT NULL AND (prompt_tokens, position) > (5, 3) ORDER BY prompt_tokens, position LIMIT 50",
    "ix_dump_request_elapsed": "SELECT * FROM dump_request WHERE dump_id = 7 AND elapsed_seconds "
    "IS NOT NULL ORDER BY elapsed_seconds DESC, position DESC LIMIT 50",
    "ix_dump_request_state": "SELECT * FROM dump_request WHERE dump_id = 7 AND state = 'aborted' "
    "ORDER BY position LIMIT 50",
    "ix_dump_request_suspect": "SELECT * FROM dump_request WHERE dump_id = 7 AND suspect_rank "
    "IS NOT NULL ORDER BY suspect_rank",
    "ix_diagnostic_item_fingerprint": "SELECT * FROM diagnostic_item WHERE fingerprint = 'ab'",
}


@pytest.fixture(params=[pytest.param("sqlite", id="sqlite"), pytest.param("pg", id="postgres")])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/a.sqlite" if sqlite else request.getfixturevalue("postgres_url")
    engine = open_database(url)
    yield engine
    engine.dispose()


def test_the_migrations_make_the_schema_that_the_code_uses(empty: Engine) -> None:
    assert migrations.current(empty) is None
    migrations.upgrade(empty)
    assert migrations.current(empty) == migrations.newest()
    assert migrations.check(empty) == []


def test_check_tells_what_differs(empty: Engine) -> None:
    migrations.upgrade(empty)
    with empty.begin() as connection:
        connection.execute(text("ALTER TABLE job DROP COLUMN says"))
    assert "says" in str(migrations.check(empty))


def test_up_down_and_up_again_ends_where_it_began(empty: Engine) -> None:
    migrations.upgrade(empty)
    migrations.downgrade(empty, "base")
    assert not set(inspect(empty).get_table_names()) & set(metadata.tables)
    migrations.upgrade(empty)
    assert migrations.check(empty) == []


def test_several_starts_at_once_do_not_race(empty: Engine) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: migrations.upgrade(empty), range(6)))
    assert migrations.check(empty) == []


def test_tables_of_others_are_left_alone(empty: Engine) -> None:
    with empty.begin() as connection:
        connection.execute(text("CREATE TABLE neighbour (id INTEGER)"))
    migrations.upgrade(empty)
    assert migrations.check(empty) == []
    assert "neighbour" in inspect(empty).get_table_names()


@pytest.mark.parametrize(("index", "query"), QUERIES.items(), ids=QUERIES.keys())
def test_the_frequent_queries_have_their_index(tmp_path: Path, index: str, query: str) -> None:
    engine = open_database(f"sqlite:///{tmp_path}/a.sqlite")
    migrations.upgrade(engine)
    with engine.connect() as connection:
        plan = str(connection.execute(text(f"EXPLAIN QUERY PLAN {query}")).all())
    engine.dispose()
    assert f"USING INDEX {index} " in plan or f"USING INDEX {index}'" in plan
    assert "TEMP B-TREE" not in plan


def test_foreign_keys_are_kept_after_a_migration(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path}/a.sqlite")
    migrations.upgrade(engine)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
    engine.dispose()


def test_the_migrations_lie_where_the_code_looks_for_them() -> None:
    assert (MIGRATIONS / "versions").is_dir()
