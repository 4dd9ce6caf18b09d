"""The API of dumps: documents, requests in pages, and text that is unsealed for a reason."""

from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.jobs.ingest import ingest
from app.jobs.work import Work
from app.store import attempts
from app.store.attempts import Attempt
from app.store.database import reading, writing
from app.store.dumps import get_dump
from app.store.stores import Stores
from app.store.tables import AuditEvent, Incident, Job
from tests import make, recorded
from tests.integration.make import now


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


def _attach(client: TestClient, incident: Incident, content: bytes, name: str) -> Any:
    url = f"/api/v1/incidents/{incident.id}/artifacts"
    return client.post(url, files={"file": (name, content)}, data={"tier": "T0"})


@pytest.fixture
def dump_id(operator: TestClient, stores: Stores, incident: Incident) -> int:
    """A crash dump of 30 requests, the last two unfinished, that was read."""
    made = _attach(operator, incident, recorded.crash_dump(28, 2), "crash.pkl").json()
    assert made["tier"] == "T2", "whatever its sender says"
    _read(stores, made["dump_id"])
    found: int = made["dump_id"]
    return found


def _read(stores: Stores, dump_id: int) -> None:
    """Do the job of the dump as a worker does."""
    with writing(stores.engine) as session:
        job = session.get_one(Job, get_dump(session, dump_id).job_id)
        attempt = Attempt(job.id or 0, job.key)
        claimed = attempts.claim(session, attempt, worker="test", places={"steps": 1}, at=now())
    assert claimed is not None
    assert ingest(Work(stores, claimed, attempt, Event())) is False


def test_the_document_is_that_of_the_command_with_its_ids(
    reader: TestClient, incident: Incident, dump_id: int
) -> None:
    told = reader.get(f"/api/v1/dumps/{dump_id}").json()

    assert (told["id"], told["incident_id"], told["state"]) == (dump_id, incident.id, "ready")
    assert (told["kind"], told["requests_total"], told["unfinished"]) == ("crash dump", 30, 2)
    assert told["prompt_tokens"]["max"] == 8
    assert {28, 29} < {one["index"] for one in told["suspects"]}
    assert "requests" not in told
    assert "sk-FAKE-1" not in str(told)
    listed = reader.get(f"/api/v1/incidents/{incident.id}/dumps").json()
    assert [one["id"] for one in listed["items"]] == [dump_id]


def test_requests_come_in_pages_in_the_order_asked_for(reader: TestClient, dump_id: int) -> None:
    url, found, more = f"/api/v1/dumps/{dump_id}/requests?sort=-started_at&limit=7", [], ""
    for _ in range(5):
        page = reader.get(f"{url}{more}").json()
        found += [one["index"] for one in page["items"]]
        more = f"&cursor={page['next_cursor']}"
    assert page["next_cursor"] is None
    assert found == list(range(29, -1, -1))


@pytest.mark.parametrize(
    ("asked", "indexes"),
    [
        pytest.param("state=unfinished", [28, 29], id="state"),
        pytest.param("feature=lora", [], id="feature"),
        pytest.param(f"rid={5:032x}", [5], id="rid"),
    ],
)
def test_requests_are_filtered(
    reader: TestClient, dump_id: int, asked: str, indexes: list[int]
) -> None:
    answer = reader.get(f"/api/v1/dumps/{dump_id}/requests?{asked}").json()
    assert [one["index"] for one in answer["items"]] == indexes


def test_suspects_alone_are_those_of_the_document(reader: TestClient, dump_id: int) -> None:
    told = reader.get(f"/api/v1/dumps/{dump_id}").json()["suspects"]
    listed = reader.get(f"/api/v1/dumps/{dump_id}/requests?suspect=true").json()["items"]
    ranked = sorted(listed, key=lambda one: one["suspect_rank"])
    assert [one["index"] for one in ranked] == [one["index"] for one in told]


@pytest.mark.parametrize(
    "asked",
    ["sort=text", "limit=0", "limit=201", "cursor=%ff", "cursor=WzFd", "state=x", "feature=A b"],
)
def test_a_question_that_makes_no_sense_is_malformed(
    reader: TestClient, dump_id: int, asked: str
) -> None:
    answer = reader.get(f"/api/v1/dumps/{dump_id}/requests?{asked}")
    assert (answer.status_code, answer.json()["error"]) == (422, "malformed")


def test_a_dump_that_was_not_read_shows_nothing(
    reader: TestClient, operator: TestClient, incident: Incident
) -> None:
    made = _attach(operator, incident, recorded.crash_dump(2, 1), "crash.pkl").json()
    url = f"/api/v1/dumps/{made['dump_id']}"

    assert reader.get(url).json()["requests_total"] is None
    for path in (f"{url}/requests", f"{url}/requests/0"):
        assert reader.get(path).status_code == 409
    unseal = {"tier": "T2", "reason": "to see"}
    assert operator.post(f"{url}/requests/0/unseal", json=unseal).status_code == 409


def test_the_same_file_again_is_answered_with_what_is_here(
    operator: TestClient, incident: Incident
) -> None:
    first, second = (
        _attach(operator, incident, recorded.crash_dump(2, 1), name) for name in ("a.pkl", "b.pkl")
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == first.json()


def test_a_request_is_told_by_its_shape_alone(reader: TestClient, dump_id: int) -> None:
    told = reader.get(f"/api/v1/dumps/{dump_id}/requests/29").json()
    assert (told["state"], told["prompt_tokens"]) == ("unfinished", 8)
    assert "prompt 29" not in str(told)


@pytest.mark.parametrize("tier", ["T1", "T2"])
def test_text_is_unsealed_after_who_what_and_why_is_noted(
    operator: TestClient, stores: Stores, dump_id: int, tier: str
) -> None:
    answer = operator.post(
        f"/api/v1/dumps/{dump_id}/requests/29/unseal",
        json={"tier": tier, "reason": "is it the long prompt?"},
    )

    assert (answer.status_code, answer.json()["tier"]) == (200, tier)
    assert answer.json()["request"]["index"] == 29
    assert "prompt 29" in answer.text
    with reading(stores.engine) as session:
        query = select(AuditEvent).where(AuditEvent.action == "dump.unseal")
        [noted] = session.exec(query).all()
    assert (noted.actor, noted.subject) == ("user:operator", f"dump:{dump_id}")
    assert noted.detail == {
        "index": 29,
        "rid": f"{29:032x}",
        "tier": tier,
        "reason": "is it the long prompt?",
    }


def test_secrets_are_masked_at_tier_one_alone(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    said = recorded.request(0, text="my key is sk-FAKE-12345678abc")
    made = _attach(operator, incident, recorded.dump([said]), "crash.pkl").json()
    _read(stores, made["dump_id"])
    url = f"/api/v1/dumps/{made['dump_id']}/requests/0/unseal"

    redacted, raw = (
        operator.post(url, json={"tier": tier, "reason": "to see"}).text for tier in ("T1", "T2")
    )

    assert "my key is " in redacted
    assert "sk-FAKE-12345678abc" not in redacted
    assert "my key is sk-FAKE-12345678abc" in raw


@pytest.mark.parametrize(
    "asked", [{"tier": "T2"}, {"tier": "T2", "reason": ""}, {"tier": "T0", "reason": "to see"}, {}]
)
def test_without_a_reason_nothing_is_unsealed(
    operator: TestClient, stores: Stores, dump_id: int, asked: dict[str, str]
) -> None:
    answer = operator.post(f"/api/v1/dumps/{dump_id}/requests/0/unseal", json=asked)
    assert answer.status_code == 422
    assert _unsealed(stores) == 0


def test_a_reader_unseals_nothing(reader: TestClient, stores: Stores, dump_id: int) -> None:
    asked = {"tier": "T1", "reason": "to see"}
    answer = reader.post(f"/api/v1/dumps/{dump_id}/requests/0/unseal", json=asked)
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert _unsealed(stores) == 0


def test_text_that_was_unsealed_is_kept_nowhere(
    operator: TestClient, stores: Stores, dump_id: int
) -> None:
    url = f"/api/v1/dumps/{dump_id}/requests/3/unseal"
    sent = {"json": {"tier": "T2", "reason": "to see"}, "headers": {"Idempotency-Key": "k"}}
    first, second = (operator.post(url, **sent) for _ in range(2))
    assert "prompt 3" in first.text
    assert "Idempotent-Replayed" not in second.headers
    assert _unsealed(stores) == 2


def _unsealed(stores: Stores) -> int:
    with reading(stores.engine) as session:
        query = select(AuditEvent).where(AuditEvent.action == "dump.unseal")
        return len(session.exec(query).all())


@pytest.mark.parametrize("number", [0, 999, 2**63, 2**80])
def test_a_dump_that_is_not_there_is_not_found(operator: TestClient, number: int) -> None:
    for path in ("", "/requests", "/requests/0"):
        assert operator.get(f"/api/v1/dumps/{number}{path}").status_code == 404
    assert operator.get(f"/dumps/{number}").status_code == 404
