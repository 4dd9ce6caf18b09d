"""The API of bundles: ask for one, read it, its summary, and what changed."""

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.store.database import reading
from app.store.stores import Stores
from app.store.tables import Incident, Target, TimelineEvent
from tests import make
from tests.bundles import rank, serving
from tests.situations import healthy, stuck


@pytest.fixture
def target(stores: Stores) -> Target:
    return make.target(stores)


@pytest.fixture
def incident(stores: Stores, target: Target) -> Incident:
    return make.incident(stores, "TTFT is up", target)


def test_collecting_is_asked_for_and_answered_with_job_and_bundle(
    operator: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    answer = operator.post(
        f"/api/v1/incidents/{incident.id}/bundles",
        json={"target_id": target.id, "probe": "never", "interval_seconds": 5},
    )

    assert answer.status_code == 202
    job, bundle = answer.json()["job"], answer.json()["bundle"]
    assert (job["state"], job["kind"], job["target_id"]) == ("queued", "collect", target.id)
    made = operator.get(f"/api/v1/bundles/{bundle['id']}").json()
    assert (made["state"], made["probe"], made["interval_seconds"]) == ("collecting", "never", 5)
    assert (made["job_id"], made["captures"], made["verdict"]) == (job["id"], [], None)
    with reading(stores.engine) as session:
        events = [event.kind for event in session.exec(select(TimelineEvent))]
    assert "StepRequested" in events


def test_the_only_target_of_an_incident_need_not_be_named(
    operator: TestClient, incident: Incident, target: Target
) -> None:
    answer = operator.post(f"/api/v1/incidents/{incident.id}/bundles", json={})

    assert answer.json()["job"]["target_id"] == target.id


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param({}, 422, "1 (a), 2 (b)", id="which-of-two"),
        pytest.param({"target_id": 3}, 404, "1 (a), 2 (b)", id="of-another-incident"),
        pytest.param({"target_id": 1, "interval_seconds": 0.5}, 422, "1", id="too-short"),
        pytest.param({"target_id": 1, "interval_seconds": 301}, 422, "300", id="too-long"),
        pytest.param({"target_id": 1, "probe": "often"}, 422, "auto", id="no-such-probe"),
        pytest.param({"target": 1}, 422, "target", id="an-unknown-field"),
    ],
)
def test_what_cannot_be_collected_is_refused_in_words(
    operator: TestClient, stores: Stores, body: dict[str, Any], status: int, says: str
) -> None:
    two = [make.target(stores, name) for name in ("a", "b")]
    make.target(stores, "c")
    about_two = make.incident(stores, "TTFT is up", *two)

    answer = operator.post(f"/api/v1/incidents/{about_two.id}/bundles", json=body)

    assert answer.status_code == status
    assert says in answer.json()["detail"]


def test_a_reader_does_not_collect(reader: TestClient, incident: Incident) -> None:
    assert reader.post(f"/api/v1/incidents/{incident.id}/bundles", json={}).status_code == 403


def test_the_same_key_collects_once(operator: TestClient, incident: Incident) -> None:
    url, headers = f"/api/v1/incidents/{incident.id}/bundles", {"Idempotency-Key": "once"}

    first, second = (operator.post(url, json={}, headers=headers).json() for _ in range(2))

    assert first == second
    assert len(operator.get(url).json()["items"]) == 1


def test_a_bundle_tells_how_asking_each_endpoint_ended(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = make.bundle(stores, incident, target, stuck())

    bundle = reader.get(f"/api/v1/bundles/{row.id}").json()

    outcomes = {one["name"]: (one["outcome"], one["status"]) for one in bundle["captures"]}
    assert outcomes["server_info"] == ("timeout", None)
    assert outcomes["ready"] == ("answered", 200)
    assert bundle["collected_at"].endswith("Z")
    assert bundle["state"] == "complete"


def test_the_summary_is_the_document_of_the_command_line(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = make.bundle(stores, incident, target, healthy())

    assert reader.get(f"/api/v1/bundles/{row.id}/summary").json() == row.summary


def test_there_is_no_summary_of_a_bundle_that_is_not_whole(
    operator: TestClient, incident: Incident
) -> None:
    made = operator.post(f"/api/v1/incidents/{incident.id}/bundles", json={}).json()["bundle"]

    for part in ("summary", f"diff/{made['id']}"):
        answer = operator.get(f"/api/v1/bundles/{made['id']}/{part}")
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict"), part


def test_a_diff_goes_from_the_earlier_to_the_later_bundle(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    early = make.bundle(stores, incident, target, healthy())
    changed = serving(rank(), info={"mem_fraction_static": 0.95})
    late = make.bundle(stores, incident, target, changed, at=make.NOON + timedelta(hours=1))

    one = reader.get(f"/api/v1/bundles/{early.id}/diff/{late.id}").json()
    other = reader.get(f"/api/v1/bundles/{late.id}/diff/{early.id}").json()

    assert one == other
    assert (one["before"]["bundle_id"], one["after"]["bundle_id"]) == (early.id, late.id)
    assert "mem_fraction_static" in {change["name"] for change in one["changes"]}


@pytest.mark.parametrize("path", ["bundles/9", "bundles/9/summary", "incidents/9/bundles"])
def test_what_is_not_there_is_not_found(reader: TestClient, path: str) -> None:
    answer = reader.get(f"/api/v1/{path}")

    assert (answer.status_code, answer.json()["error"]) == (404, "not-found")
