"""Real databases for the tests of store and queue: a SQLite file, and a throw-away PostgreSQL."""

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import mkdtemp
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


@dataclass(frozen=True)
class Cluster:
    """A throw-away PostgreSQL."""

    url: str  # without a database's name
    template: str  # a database with the tables of the console and of its engine, to be copied
    folder: str


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all workers of a run: the first that needs it starts it, the last one ends it."""
    if reason := _why_not():
        pytest.skip(reason)
    mine = tmp_path_factory.getbasetemp()
    shared = mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
    with _alone(shared / "cluster.lock"):
        users = shared / "cluster"
        users.mkdir(exist_ok=True)
        described = shared / "cluster.json"
        if not any(users.iterdir()):
            described.write_text(json.dumps(asdict(_start_cluster(mine))))
        (users / mine.name).touch()
    cluster = Cluster(**json.loads(described.read_text()))
    yield cluster
    with _alone(shared / "cluster.lock"):
        (users / mine.name).unlink()
        if not any(users.iterdir()):
            _as_postgres(f"{BINARIES[-1]}/pg_ctl -D {cluster.folder}/data -m immediate -w stop")
            shutil.rmtree(cluster.folder)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        flock(lock, LOCK_EX)
        yield


def _start_cluster(scratch: Path) -> Cluster:
    port, binaries, folder = free_port(), BINARIES[-1], mkdtemp(prefix="postgres-")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    options = (
        f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=300"
    )
    _as_postgres(f"{binaries}/initdb -D {folder}/data -A trust -U postgres -N")
    _as_postgres(f"{binaries}/pg_ctl -D {folder}/data -l {folder}/log -w -o '{options}' start")
    url = f"postgresql+psycopg://postgres@127.0.0.1:{port}"
    template = _new_database(url)
    stores = _stores(scratch / "template", template)
    Engine.start(stores).stop()
    stores.close()
    return Cluster(url, template.rpartition("/")[2], folder)


@pytest.fixture
def postgres_url(cluster: Cluster) -> str:
    """An empty database of its own."""
    return _new_database(cluster.url)


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
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgres", id="postgres", marks=pytest.mark.slow),
    ],
)
def make_stores(request: pytest.FixtureRequest) -> MakeStores:
    """Opens migrated stores in a folder, on SQLite and then on PostgreSQL."""
    if request.param == "sqlite":
        return lambda folder: _stores(folder, None)
    cluster: Cluster = request.getfixturevalue("cluster")
    return lambda folder: _stores(folder, _new_database(cluster.url, cluster.template))


@pytest.fixture
def any_stores(make_stores: MakeStores, tmp_path: Path) -> Iterator[Stores]:
    """Empty stores of one test, on each database in turn."""
    stores = make_stores(tmp_path)
    yield stores
    stores.close()
