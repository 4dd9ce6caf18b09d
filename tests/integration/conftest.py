"""Real databases for the tests of store and queue: a SQLite file, and a throw-away PostgreSQL."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from app.jobs.engine import Engine
from app.settings import Settings
from app.store import migrations
from app.store.stores import Stores
from tests.ports import free_port

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))

MakeStores = Callable[[Path], Stores]


def _as_postgres(command: str) -> None:
    """PostgreSQL refuses to run as root, so root lends the work to the user "postgres"."""
    line = ["su", "postgres", "-c", command] if os.geteuid() == 0 else ["sh", "-c", command]
    subprocess.run(line, check=True, capture_output=True, cwd="/")


def _why_not() -> str | None:
    if not BINARIES:
        return "PostgreSQL's binaries are not installed"
    if os.geteuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        return "PostgreSQL does not run as root and there is no user postgres"
    return None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a cluster that lives as long as the tests, without a database's name."""
    if reason := _why_not():
        pytest.skip(reason)
    port, binaries = free_port(), BINARIES[-1]
    with TemporaryDirectory(prefix="postgres-") as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = f"{folder}/data"
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        _as_postgres(f"{binaries}/initdb -D {data} -A trust -U postgres -N")
        _as_postgres(f"{binaries}/pg_ctl -D {data} -l {folder}/log -w -o '{options}' start")
        try:
            yield f"postgresql+psycopg://postgres@127.0.0.1:{port}"
        finally:
            _as_postgres(f"{binaries}/pg_ctl -D {data} -m immediate -w stop")


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """An empty database of its own."""
    return _new_database(postgres_server)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a database with the tables of the console and of its engine, to be copied."""
    url = _new_database(postgres_server)
    stores = _stores(tmp_path_factory.mktemp("template"), url)
    Engine.start(stores).stop()
    stores.close()
    return url.rpartition("/")[2]


def _new_database(server: str, template: str = "template1") -> str:
    name = f"test_{uuid4().hex}"
    engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    engine.dispose()
    return f"{server}/{name}"


def _stores(folder: Path, url: str | None) -> Stores:
    stores = Stores.open(Settings(data_dir=folder, database_url=url, min_free_bytes=0))
    migrations.upgrade(stores.engine)
    return stores


@pytest.fixture(
    scope="session",
    params=[pytest.param("sqlite", id="sqlite"), pytest.param("postgres", id="postgres")],
)
def make_stores(request: pytest.FixtureRequest) -> MakeStores:
    """Opens migrated stores in a folder, on SQLite and then on PostgreSQL."""
    if request.param == "sqlite":
        return lambda folder: _stores(folder, None)
    server: str = request.getfixturevalue("postgres_server")
    template: str = request.getfixturevalue("postgres_template")
    return lambda folder: _stores(folder, _new_database(server, template))


@pytest.fixture
def any_stores(make_stores: MakeStores, tmp_path: Path) -> Iterator[Stores]:
    """Empty stores of one test, on each database in turn."""
    stores = make_stores(tmp_path)
    yield stores
    stores.close()
