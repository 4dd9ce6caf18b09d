"""Incidents and their timelines over the API."""

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.store.database import reading
from app.store.incidents import jobs_at_work
from app.store.stores import Stores
from tests import make, situations

URL = "/api/v1/incidents"


def pages(client: TestClient, url: str, **asked: Any) -> list[dict[str, Any]]:
    """All items of a list, read two at a time."""
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        place: dict[str, str] = {"cursor": cursor} if cursor else {}
        page = client.get(url, params={"limit": 2, **place, **asked}).json()
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


def test_an_incident_is_opened_and_read_by_its_number(operator: TestClient, stores: Stores) -> None:
    make.target(stores)
    made = operator.post(
        URL,
        json={
            "title": "Users wait",
            "severity": "sev2",
            "target_ids": [1],
            "tags": ["night"],
            "started_at": "2026-11-30T04:51:40+02:00",
        },
    )

    assert made.status_code == 201
    told = made.json()
    assert (told["id"], told["number"], told["state"]) == (1, 1, "open")
    assert told["started_at"] == "2026-11-30T02:51:40Z"
    assert (told["target_ids"], told["verdict"], told["headline"]) == ([1], None, None)
    assert operator.get(f"{URL}/1").json() == told


def test_a_bundle_is_asked_for_only_when_wanted(operator: TestClient, stores: Stores) -> None:
    make.target(stores)

    operator.post(URL, json={"title": "a", "target_ids": [1]})
    operator.post(URL, json={"title": "b", "target_ids": [1], "collect": True})

    with reading(stores.engine) as session:
        assert not jobs_at_work(session, 1)
        assert len(jobs_at_work(session, 2)) == 1


def test_the_same_key_opens_one_incident(operator: TestClient) -> None:
    first, second = (
        operator.post(URL, json={"title": "a"}, headers={"Idempotency-Key": "k"}) for _ in "12"
    )

    assert first.json() == second.json()
    assert len(pages(operator, URL)) == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="no title"),
        pytest.param({"title": ""}, id="an empty title"),
        pytest.param({"title": "x" * 301}, id="a long title"),
        pytest.param({"title": "x", "severity": "sev9"}, id="no such severity"),
        pytest.param({"title": "x", "started_at": "2026-11-30T02:51:40"}, id="a time of no zone"),
        pytest.param({"title": "x", "target_ids": [7]}, id="no such target"),
        pytest.param({"title": "x", "tags": ["t" * 41]}, id="a long tag"),
        pytest.param({"title": "x", "state": "open"}, id="an unknown field"),
    ],
)
def test_what_cannot_be_opened_is_422_with_a_reason(
    operator: TestClient, body: dict[str, object]
) -> None:
    answer = operator.post(URL, json=body)

    assert answer.status_code == 422
    assert set(answer.json()) == {"error", "detail"}


def test_only_what_was_sent_is_changed(operator: TestClient, stores: Stores) -> None:
    make.incident(stores, severity="sev2", tags=("night",))

    told = operator.patch(
        f"{URL}/1", json={"state": "acknowledged", "severity": None, "problem_class": "crash"}
    ).json()

    assert (told["state"], told["severity"], told["tags"]) == ("acknowledged", None, ["night"])
    assert (told["problem_class"], told["problem_class_by"]) == ("crash", "operator")
    assert told["acknowledged_at"] is not None
    assert operator.patch(f"{URL}/1", json={"state": None}).status_code == 422
    assert operator.patch(f"{URL}/1", json={"state": "open"}).status_code == 409
    assert operator.patch(f"{URL}/1", json={"problem_class": "bad luck"}).status_code == 422


def test_the_list_comes_in_pages_and_takes_the_filter_of_the_page(
    operator: TestClient, stores: Stores
) -> None:
    target = make.target(stores)
    for number in range(4):
        make.incident(stores, f"incident {number}", severity=f"sev{number + 1}")
    failing = make.incident(stores, "failing", target)
    make.bundle(stores, failing, target, situations.gone())
    operator.patch(f"{URL}/1", json={"state": "resolved"})
    titles = [one["title"] for one in pages(operator, URL)]

    assert titles == ["failing", "incident 3", "incident 2", "incident 1", "incident 0"]
    assert [one["id"] for one in pages(operator, URL, state="open")] == [5, 4, 3, 2]
    assert [one["id"] for one in pages(operator, URL, state="resolved")] == [1]
    assert [one["id"] for one in pages(operator, URL, q="sev:2")] == [2]
    assert pages(operator, URL)[0]["verdict"] == "gone"
    assert operator.get(URL, params={"cursor": "WzFd", "state": "open"}).status_code == 422


def test_a_note_is_added_pinned_and_read(operator: TestClient, stores: Stores) -> None:
    make.incident(stores)
    note = operator.post(
        f"{URL}/1/timeline", json={"text": " Drained. ", "occurred_at": "2026-11-29T00:00:00Z"}
    )

    pinned = operator.patch(f"{URL}/1/timeline/{note.json()['id']}", json={"pinned": True})
    story = pages(operator, f"{URL}/1/timeline")

    assert note.status_code == 201
    assert (note.json()["says"], note.json()["actor"]) == ("Drained.", "operator")
    assert pinned.json()["pinned"] is True
    assert [one["says"] for one in story] == ["Opened: TTFT is up", "Drained."]
    assert story[1]["occurred_at"] == "2026-11-29T00:00:00Z"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"text": "  "}, id="empty"),
        pytest.param({"text": "x" * 10_001}, id="long"),
        pytest.param({"text": "x", "pinned": True}, id="an unknown field"),
    ],
)
def test_a_note_that_cannot_be_kept_is_422(
    operator: TestClient, stores: Stores, body: dict[str, object]
) -> None:
    make.incident(stores)

    assert operator.post(f"{URL}/1/timeline", json=body).status_code == 422


def test_a_timeline_comes_in_pages_without_gap_or_double(
    operator: TestClient, stores: Stores
) -> None:
    make.incident(stores, at=make.NOON - timedelta(days=300))
    for number in range(7):
        operator.post(f"{URL}/1/timeline", json={"text": f"note {number}"})

    says = [one["says"] for one in pages(operator, f"{URL}/1/timeline")]

    assert says == [f"note {number}" for number in range(6, -1, -1)] + ["Opened: TTFT is up"]


def test_an_event_cannot_be_changed_but_for_its_pin(operator: TestClient, stores: Stores) -> None:
    make.incident(stores)
    make.incident(stores)

    assert operator.patch(f"{URL}/1/timeline/1", json={"text": "other"}).status_code == 422
    assert operator.patch(f"{URL}/2/timeline/1", json={"pinned": True}).status_code == 404


def test_a_reader_looks_and_changes_nothing(reader: TestClient, stores: Stores) -> None:
    make.incident(stores)

    assert reader.get(URL).status_code == 200
    assert reader.get(f"{URL}/1/timeline").status_code == 200
    assert reader.post(URL, json={"title": "x"}).status_code == 403
    assert reader.patch(f"{URL}/1", json={"state": "resolved"}).status_code == 403
    assert reader.post(f"{URL}/1/timeline", json={"text": "x"}).status_code == 403


@pytest.mark.parametrize("number", ["0", "7", str(2**63), "9" * 40])
def test_a_number_without_an_incident_is_404(reader: TestClient, number: str) -> None:
    assert reader.get(f"{URL}/{number}").status_code == 404
    assert reader.get(f"{URL}/{number}/timeline").status_code == 404
