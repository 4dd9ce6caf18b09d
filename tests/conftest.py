"""One console for each test: its own data folder, migrated, with one user of each role.

What only these fixtures need is imported inside them, so that a unit test of the domain starts
without database and web.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.settings import PREFIX, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

    from app.store.stores import Stores

PAGES = {f"tests/e2e/test_{name}.py" for name in ("every_page", "flame", "keys", "roles", "shell")}
COREDUMPS = {f"tests/integration/test_{name}.py" for name in ("cli_coredump", "coredump_story")}
PASSWORD = "correct horse battery"  # of every user
BASE_URL = "http://127.0.0.1"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file goes whole to a worker; those that share a Chromium go together."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file in PAGES:
                return "pages"  # of one seeded console
            if file in COREDUMPS:
                return "coredumps"  # a host has one at a time
            return "stories" if file.startswith("tests/e2e/") else file

    return ByFile(config, log)


@dataclass(frozen=True)
class Prepared:
    """A migrated database with users, copied for each test, and the cookies of their sessions."""

    file: Path
    cookies: dict[str, str]  # by role, which is the user's name as well


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    from app.store import accounts, migrations, passwords
    from app.store.audit import CLI
    from app.store.database import open_database, writing
    from app.store.sign_in import start_session

    file = tmp_path_factory.mktemp("prepared") / "console.sqlite"
    engine = open_database(f"sqlite:///{file}")
    migrations.upgrade(engine)
    now, password_hash = datetime.now(UTC), passwords.hashed(PASSWORD)
    cookies = {}
    with writing(engine) as session:
        for role in accounts.ROLES:
            user = accounts.create_user(
                session, role, role=role, password_hash=password_hash, actor=CLI, at=now
            )
            cookies[role] = start_session(session, user, address=None, hours=12, at=now)
    engine.dispose()  # the last connection folds the write-ahead log into the file
    return Prepared(file, cookies)


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path / "data", min_free_bytes=0)


@pytest.fixture
def anybody(settings: Settings, prepared: Prepared) -> Iterator[TestClient]:
    """A browser that has not signed in; the console runs as long as it is open."""
    from fastapi.testclient import TestClient

    from app.main import create_app

    settings.data_dir.mkdir()
    shutil.copy(prepared.file, settings.data_dir / "console.sqlite")
    with TestClient(create_app(settings), BASE_URL, follow_redirects=False) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        yield client


@pytest.fixture
def app(anybody: TestClient) -> FastAPI:
    running: FastAPI = anybody.app  # type: ignore[assignment]
    return running


@pytest.fixture
def stores(app: FastAPI) -> Stores:
    opened: Stores = app.state.stores
    return opened


def _signed_in(anybody: TestClient, cookie: str) -> TestClient:
    client = type(anybody)(anybody.app, BASE_URL, follow_redirects=False)
    client.portal = anybody.portal  # one event loop for all, as in one process
    client.headers.update(anybody.headers)
    client.cookies.set("session", cookie)
    return client


@pytest.fixture
def reader(anybody: TestClient, prepared: Prepared) -> TestClient:
    return _signed_in(anybody, prepared.cookies["reader"])


@pytest.fixture
def operator(anybody: TestClient, prepared: Prepared) -> TestClient:
    return _signed_in(anybody, prepared.cookies["operator"])


@pytest.fixture
def admin(anybody: TestClient, prepared: Prepared) -> TestClient:
    return _signed_in(anybody, prepared.cookies["admin"])


@pytest.fixture
def client(operator: TestClient) -> TestClient:
    """A signed-in operator, where the role is not the point."""
    return operator
