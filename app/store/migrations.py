"""Bringing the database to the schema of ``tables.py``, and telling whether it is there.

Applied at every start of ``serve``. Several starts at once wait for each other: on SQLite for
the write lock, on PostgreSQL for an advisory lock; the later ones find nothing left to do.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from app.files import MIGRATIONS
from app.store.tables import metadata

LOCK = 0x1C0  # names our advisory lock; any number that nobody else uses


def ours(_thing: object, name: str | None, kind: str, reflected: bool, _with: object) -> bool:  # noqa: FBT001
    """Whether Alembic may touch it: not the tables of the durable engine or of a neighbour."""
    return not (kind == "table" and reflected and name not in metadata.tables)


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Apply what is missing up to *revision*; all of it or nothing."""
    with _exclusive(engine) as connection:
        command.upgrade(_config(connection), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Take back what came after *revision*, "base" for everything."""
    with _exclusive(engine) as connection:
        command.downgrade(_config(connection), revision)


def current(engine: Engine) -> str | None:
    """The revision of the database; None before the first migration."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest() -> str | None:
    """The revision that this version of the console needs."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def check(engine: Engine) -> list[Any]:
    """In what the database differs from ``tables.py``, as Alembic tells it; empty when equal."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": ours})
        return list(compare_metadata(context, metadata))


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _exclusive(engine: Engine) -> Generator[Connection]:
    """A transaction that no other start is in at the same time."""
    with engine.execution_options(writes=True).connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if sqlite:
            # Batch mode replaces tables that others refer to; outside a transaction only.
            _foreign_keys(connection, "OFF")
        with connection.begin():
            if not sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield connection
        if sqlite:
            _foreign_keys(connection, "ON")


def _foreign_keys(connection: Connection, state: str) -> None:
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA foreign_keys = {state}")
    cursor.close()
