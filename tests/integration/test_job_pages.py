"""Job pages: how far a job is, live and without script, cancelling and resuming it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Timer
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Incident, Job
from app.web.live import LiveJobs
from tests import make


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


def job(stores: Stores, **given: Any) -> int:
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "key": "one",
        "kind": "collect",
        "partition": "alone",
        "arguments": {},
        "requested_by": "mira",
        "created_at": now,
        "started_at": now,
        "state": "running",
        "done": 4,
        "total": 10,
        "says": "/metrics: answered.",
        **given,
    }
    row = Job(**values)
    with writing(stores.engine) as session:
        session.add(row)
    assert row.id is not None
    return row.id


def change(stores: Stores, job_id: int, **values: object) -> None:
    with writing(stores.engine) as session:
        row = session.get_one(Job, job_id)
        for name, value in values.items():
            setattr(row, name, value)
        row.version += 1


@pytest.fixture
def ends_soon(stores: Stores) -> Iterator[int]:
    """A running job that ends after a second."""
    job_id = job(stores)
    timer = Timer(2.0, lambda: change(stores, job_id, state="succeeded", done=10))
    timer.start()
    yield job_id
    timer.join()


def test_a_running_job_tells_how_far_it_is_and_follows_its_events(
    operator: TestClient, stores: Stores
) -> None:
    page = operator.get(f"/jobs/{job(stores)}").text

    assert "40 % · collecting a bundle" in page
    assert 'aria-valuenow="4"' in page
    assert "hx-sse:connect" in page
    assert "Cancel the job" in page


@pytest.mark.parametrize(
    ("state", "says"),
    [
        pytest.param("succeeded", "Collecting a bundle: done", id="done"),
        pytest.param("failed", "Nothing listens there.", id="failed-with-its-reason"),
        pytest.param("cancelled", "Resume the job", id="cancelled-may-go-on"),
        pytest.param("interrupted", "not repeated without your consent", id="interrupted"),
    ],
)
def test_an_ended_job_says_how_and_asks_no_more(
    operator: TestClient, stores: Stores, state: str, says: str
) -> None:
    job_id = job(stores, state=state, reason="Nothing listens there.")

    page = operator.get(f"/jobs/{job_id}").text

    assert says in page
    assert "hx-sse:connect" not in page
    assert "hx-trigger" not in page


def test_a_job_that_no_worker_takes_says_so(operator: TestClient, stores: Stores) -> None:
    job_id = job(stores, state="queued", created_at=make.NOON.replace(year=2025), started_at=None)

    assert "No worker took this job yet." in operator.get(f"/jobs/{job_id}").text


def test_hostile_words_of_a_job_are_harmless(operator: TestClient, stores: Stores) -> None:
    job_id = job(stores, state="failed", reason="<script>\x1b[2J", says="<img src=x>")

    page = operator.get(f"/jobs/{job_id}").text

    assert "&lt;script&gt;\\x1b[2J" in page
    assert "<img" not in page


def test_the_events_are_the_progress_as_html_until_the_job_ends(
    operator: TestClient, ends_soon: int
) -> None:
    with operator.stream("GET", f"/jobs/{ends_soon}/events") as answer:
        text = "\n".join(answer.iter_lines())

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "<title>40 % · collecting a bundle" in text
    assert text.index('aria-valuenow="4"') < text.index("event: moved")
    assert text.rstrip().endswith("event: ended\ndata: succeeded")


def test_one_page_too_many_is_told_to_ask_at_each_tick(
    operator: TestClient, app: FastAPI, stores: Stores
) -> None:
    job_id = job(stores)
    app.state.live_jobs = LiveJobs(stores.engine, most_followers=0)

    events = operator.get(f"/jobs/{job_id}/events").text
    part = operator.get(f"/jobs/{job_id}/progress").text

    assert events.startswith("event: full\n")
    assert 'hx-trigger="tick from:body"' in part
    assert "live updates cannot be had" in part


def test_the_last_answer_to_a_tick_loads_the_page_anew(
    operator: TestClient, stores: Stores
) -> None:
    part = operator.get(f"/jobs/{job(stores, state='cancelled')}/progress")

    assert part.headers["HX-Refresh"] == "true"
    assert "hx-trigger" not in part.text


def test_cancelling_is_asked_for_and_said(operator: TestClient, stores: Stores) -> None:
    job_id = job(stores)

    answer = operator.post(f"/jobs/{job_id}/cancel")

    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job_id}")
    assert "It stops at the next answer." in operator.get(f"/jobs/{job_id}").text


def test_what_is_over_cannot_be_cancelled_and_what_runs_cannot_be_resumed(
    operator: TestClient, stores: Stores
) -> None:
    over, running = job(stores, state="succeeded"), job(stores, key="two")

    assert operator.post(f"/jobs/{over}/cancel").status_code == 409
    assert operator.post(f"/jobs/{running}/resume").status_code == 409


def test_a_resumed_job_waits_for_a_worker_again(operator: TestClient, stores: Stores) -> None:
    job_id = job(stores, state="failed")

    assert operator.post(f"/jobs/{job_id}/resume").status_code == 303
    with reading(stores.engine) as session:
        assert session.get_one(Job, job_id).state == "queued"


@pytest.mark.parametrize("act", ["cancel", "resume"])
def test_a_reader_looks_but_does_not_press(reader: TestClient, stores: Stores, act: str) -> None:
    job_id = job(stores)

    assert "Cancel the job" not in reader.get(f"/jobs/{job_id}").text
    assert reader.post(f"/jobs/{job_id}/{act}").status_code == 403
