"""The agent inside the console: asked like any other, reached from nowhere else."""

import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from fastapi.testclient import TestClient

from app.embedding import embed
from app.jobs.engine import Engine
from app.main import create_app
from app.settings import Settings
from app.store import hosts
from app.store.database import reading, writing
from app.store.own_host import own_host
from app.store.stores import Stores
from tests.conftest import BASE_URL, Prepared
from tests.integration import diagnosing, make
from tests.integration.conftest import MakeStores
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the agent is Linux only")

Serve = Callable[..., AbstractContextManager[TestClient]]


@pytest.fixture
def serve(settings: Settings, prepared: Prepared) -> Serve:
    """A console with a reader signed in, as often as a test starts it."""

    @contextmanager
    def started(*, with_agent: bool) -> Iterator[TestClient]:
        if not settings.data_dir.exists():
            settings.data_dir.mkdir()
            shutil.copy(prepared.file, settings.data_dir / "console.sqlite")
        app = create_app(settings, with_agent=with_agent)
        with TestClient(app, BASE_URL, follow_redirects=False) as client:
            client.cookies.set("session", prepared.cookies["reader"])
            yield client

    return started


def _hosts(client: TestClient) -> list[tuple[int, bool]]:
    return [(one["id"], one["embedded"]) for one in client.get("/api/v1/hosts").json()["items"]]


def test_the_machine_of_the_console_is_a_host_of_its_own(serve: Serve) -> None:
    with serve(with_agent=True) as client:
        [(host_id, embedded)] = _hosts(client)
        told = client.get(f"/api/v1/hosts/{host_id}/processes").json()
        assert (embedded, told["supported"], told["problem"]) == (True, True, None)
        assert client.get("/agent/v1/alive").status_code == 404, "it has no way in from outside"
    with serve(with_agent=True) as client:
        assert _hosts(client) == [(host_id, True)], "a restart makes no second host"


def test_without_an_agent_there_is_no_host(serve: Serve) -> None:
    with serve(with_agent=False) as client:
        assert _hosts(client) == []


def test_a_second_process_on_the_folder_serves_without_an_agent(serve: Serve) -> None:
    with serve(with_agent=True) as first, serve(with_agent=True) as second:
        [(host_id, _)] = _hosts(second)
        url = f"/api/v1/hosts/{host_id}/processes"
        assert first.get(url).json()["problem"] is None
        assert "another process of this console" in second.get(url).json()["problem"]


@pytest.fixture
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    opened = make_stores(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


def test_a_worker_that_does_not_reach_the_agent_leaves_the_job_to_one_that_does(
    stores: Stores,
) -> None:
    name = socket.gethostname()
    with writing(stores.engine) as session:
        host = own_host(session, name, "a1", bytes(32), vault=stores.vault, at=make.now())
        assert host is not None
        seen = diagnosing.processes(diagnosing.server())
        hosts.note_heard(session, host.id or 0, processes=seen, at=make.now())
    engine = Engine.start(stores)
    try:
        incident_id = diagnosing.incident(stores)
        diagnostic_id = diagnosing.press(stores, incident_id, "host facts", host_ids=[host.id])
        until(lambda: diagnosing.job(stores, diagnostic_id).attempts >= 2)
        assert diagnosing.items(stores, diagnostic_id) == []
        agent = embed(stores)
        assert agent is not None
        row = diagnosing.ended(stores, diagnostic_id)
        agent.stop()
    finally:
        engine.stop()
    assert row.state == "done"
    with reading(stores.engine) as session:
        assert [one.name for one in hosts.list_hosts(session)] == [name]
