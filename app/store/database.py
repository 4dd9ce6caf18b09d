"""Opening the database and talking to it.

SQLite has one writer at a time: a writing session takes the lock at its start (BEGIN
IMMEDIATE), does nothing but database work, and commits at its end, so that no reasoning
about races is needed inside. ``synchronous=FULL``: what was acknowledged survives power loss.

PostgreSQL locks rows. A process that was frozen in the middle of a transaction (a paused machine,
SIGSTOP) would hold its locks for ever, also against the worker that is to go on with its work:
the server ends such a transaction, and a wait for a lock ends with an error as on SQLite.

What targets and people write is kept alike on both: NaN and infinity in JSON become null, as
PostgreSQL refuses them there, and in its texts U+0000 is written as U+FFFD.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry
from sqlmodel import Session, create_engine

BUSY_TIMEOUT_SECONDS = 30  # for a lock
IDLE_IN_TRANSACTION_SECONDS = 20  # between two statements; less than a wait for its locks lasts


def open_database(url: str) -> Engine:
    """An engine for *url*, SQLite or PostgreSQL; the folder of a SQLite file is made."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        engine = open_postgres(parsed, pool_size=20)
        event.listen(engine, "before_cursor_execute", _send_no_nul, retval=True)
        return engine
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        parsed,
        pool_size=40,
        connect_args={"check_same_thread": False},
        hide_parameters=True,  # an error in the log must not tell a hash or a sealed token
        json_serializer=_json,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def open_postgres(url: URL, *, pool_size: int) -> Engine:
    """An engine of at most twice *pool_size* connections, on which no lock is held for ever."""
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        hide_parameters=True,
        json_serializer=_json,
    )
    event.listen(engine, "connect", _prepare_postgres)
    return engine


def _json(value: Any) -> str:  # noqa: ANN401  (any JSON)
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _send_no_nul(
    _connection: Connection,
    _cursor: Any,  # noqa: ANN401
    statement: str,
    parameters: Any,  # noqa: ANN401
    _context: Any,  # noqa: ANN401
    _many: bool,  # noqa: FBT001
) -> tuple[str, Any]:
    return statement, _without_nul(parameters)


def _without_nul(value: Any) -> Any:  # noqa: ANN401
    match value:
        case str():
            return value.replace("\0", "\ufffd")
        case dict():
            return {name: _without_nul(one) for name, one in value.items()}
        case list():
            return [_without_nul(one) for one in value]
    return value


def _prepare_postgres(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = '{BUSY_TIMEOUT_SECONDS}s'")
    cursor.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_SECONDS}s'")
    cursor.close()
    connection.commit()


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # we send BEGIN ourselves
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"busy_timeout = {BUSY_TIMEOUT_SECONDS * 1000}",
        "cache_size = -65536",  # 64 MiB: the incident list stays in memory
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Generator[Session]:
    """A session that never commits."""
    with Session(engine, expire_on_commit=False) as session:
        yield session


@contextmanager
def writing(engine: Engine) -> Generator[Session]:
    """A session that holds the write lock from the start and commits at the end."""
    with Session(engine.execution_options(writes=True), expire_on_commit=False) as session:
        yield session
        session.commit()
