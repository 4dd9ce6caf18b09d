"""What machines that watch the console are told."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from app.store import api_tokens
from app.store.audit import CLI
from app.store.database import writing
from app.store.stores import Stores
from app.store.tables import BundleRow, Job, Worker

NOW = datetime.now(UTC)


def _hear_worker(stores: Stores, ago: timedelta = timedelta()) -> None:
    at = datetime.now(UTC) - ago
    with writing(stores.engine) as session:
        session.merge(Worker(executor_id="w1", started_at=at, heard_at=at))


def test_the_process_is_alive_even_without_a_worker(anybody: TestClient) -> None:
    assert anybody.get("/healthz").json() == {"status": "ok"}


def test_it_is_ready_when_database_storage_and_worker_are(
    anybody: TestClient, stores: Stores
) -> None:
    _hear_worker(stores)

    answer = anybody.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "database": "ok",
        "storage": "ok",
        "worker": "ok",
    }


def test_without_a_worker_it_is_not_ready(anybody: TestClient) -> None:
    answer = anybody.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["worker"] == "none started"


def test_a_silent_worker_is_told_with_its_silence(anybody: TestClient, stores: Stores) -> None:
    _hear_worker(stores, timedelta(minutes=5))

    answer = anybody.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["worker"].startswith("silent for 3")


def test_storage_that_went_away_is_told(anybody: TestClient, stores: Stores) -> None:
    _hear_worker(stores)
    assert stores.artifacts.root is not None
    shutil.rmtree(stores.artifacts.root)

    answer = anybody.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["storage"] == "failed: no such folder"
    assert answer.json()["database"] == "ok"


def test_a_database_that_went_away_is_told_without_an_error(
    anybody: TestClient, stores: Stores
) -> None:
    stores.engine.dispose()
    for path in stores.settings.data_dir.glob("console.sqlite*"):
        path.unlink()
    (stores.settings.data_dir / "console.sqlite").mkdir()

    answer = anybody.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["database"] == "failed: OperationalError"
    assert answer.json()["worker"] == "not known: OperationalError"
    assert anybody.get("/healthz").status_code == 200


def test_the_figures_tell_requests_jobs_and_bundles(reader: TestClient, stores: Stores) -> None:
    with writing(stores.engine) as session:
        session.add(
            Job(key="k", kind="collect", partition="target:1", requested_by="mira",
                created_at=NOW, arguments={}, state="queued")
        )  # fmt: skip
        session.add(BundleRow(base_url="http://h", collected_at=NOW))
    reader.get("/settings")
    reader.get("/nothing/at/all")

    text = reader.get("/metrics").text

    assert 'incident_console_jobs{state="queued"} 1.0' in text
    assert "incident_console_bundles 1.0" in text
    assert (
        'incident_console_requests_total{method="GET",route="/settings",status="200"} 1.0' in text
    )
    assert 'route="none",status="404"' in text
    assert "/nothing" not in text
    assert "incident_console_request_seconds_bucket" in text
    assert "incident_console_build_info{version=" in text


def test_the_figures_are_not_public(anybody: TestClient, stores: Stores) -> None:
    assert anybody.get("/metrics").status_code == 401
    with writing(stores.engine) as session:
        _, token = api_tokens.create_token(session, "prom", role="reader", actor=CLI, at=NOW)
    bearer = {"Authorization": f"Bearer {token}"}
    assert anybody.get("/metrics", headers=bearer).status_code == 200


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.5", {}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "10.0.0.5"}, 401),
        ("10.0.0.5", {"X-Forwarded-For": "127.0.0.1"}, 401),
    ],
)
def test_a_program_on_this_machine_may_read_them_but_no_proxy_for_others(
    anybody: TestClient, address: str, headers: dict[str, str], status: int
) -> None:
    here = TestClient(anybody.app, "http://127.0.0.1", client=(address, 4711))
    here.portal = anybody.portal

    assert here.get("/metrics", headers=headers).status_code == status
