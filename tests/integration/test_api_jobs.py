"""The API of jobs: read, follow, cancel, resume."""

import json
from threading import Timer

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.store.stores import Stores
from app.web.live import LiveJobs
from tests import make
from tests.integration.test_job_pages import change, job


def test_a_job_tells_where_it_stands(reader: TestClient, stores: Stores) -> None:
    told = reader.get(f"/api/v1/jobs/{job(stores)}").json()

    assert (told["state"], told["done"], told["total"]) == ("running", 4, 10)
    assert told["created_at"].endswith("Z")
    assert told["finished_at"] is None


def test_the_jobs_of_an_incident_are_listed_newest_first(
    reader: TestClient, stores: Stores
) -> None:
    incident = make.incident(stores)
    first = job(stores, incident_id=incident.id)
    second = job(stores, key="two", incident_id=incident.id)
    job(stores, key="of another")

    items = reader.get(f"/api/v1/incidents/{incident.id}/jobs").json()["items"]

    assert [one["id"] for one in items] == [second, first]


def test_following_a_job_gives_json_at_each_change_until_it_ends(
    reader: TestClient, stores: Stores
) -> None:
    job_id = job(stores)
    timer = Timer(2.0, lambda: change(stores, job_id, state="failed", reason="refused"))
    timer.start()

    with reader.stream("GET", f"/api/v1/jobs/{job_id}/events") as answer:
        lines = list(answer.iter_lines())
    timer.join()

    states = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert states[0]["state"] == "running"
    assert (states[-1]["state"], states[-1]["reason"]) == ("failed", "refused")
    assert {line for line in lines if line.startswith("event")} == {"event: job"}
    assert "id: 1" in lines


def test_one_follower_too_many_is_asked_to_come_back(
    reader: TestClient, app: FastAPI, stores: Stores
) -> None:
    job_id = job(stores)
    app.state.live_jobs = LiveJobs(stores.engine, most_followers=0)

    answer = reader.get(f"/api/v1/jobs/{job_id}/events")

    assert (answer.status_code, answer.json()["error"]) == (429, "throttled")
    assert answer.headers["retry-after"] == "10"


def test_cancel_and_resume(operator: TestClient, stores: Stores) -> None:
    job_id = job(stores, state="queued", started_at=None)

    cancelled = operator.post(f"/api/v1/jobs/{job_id}/cancel")
    resumed = operator.post(f"/api/v1/jobs/{job_id}/resume")

    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert (resumed.status_code, resumed.json()["state"]) == (202, "queued")


@pytest.mark.parametrize("act", ["cancel", "resume"])
def test_a_job_that_is_done_takes_no_more_orders(
    operator: TestClient, stores: Stores, act: str
) -> None:
    answer = operator.post(f"/api/v1/jobs/{job(stores, state='succeeded')}/{act}")

    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


@pytest.mark.parametrize("act", ["cancel", "resume"])
def test_a_reader_gives_no_orders(reader: TestClient, stores: Stores, act: str) -> None:
    assert reader.post(f"/api/v1/jobs/{job(stores)}/{act}").status_code == 403


@pytest.mark.parametrize("path", ["jobs/9", "jobs/9/events", "incidents/9/jobs"])
def test_what_is_not_there_is_not_found(reader: TestClient, path: str) -> None:
    answer = reader.get(f"/api/v1/{path}")

    assert (answer.status_code, answer.json()["error"]) == (404, "not-found")
