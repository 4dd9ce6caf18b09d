"""The API of replays: guards, permission, the same request twice, pages of outcomes."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.domain.replay.outcomes import ErrorClass, Outcome
from app.domain.replay.planned import Recorded
from app.store import replay_rows
from app.store.database import reading, writing
from app.store.replay_tables import ReplayOutcome
from app.store.stores import Stores
from app.store.tables import AuditEvent, Job, Replay, Target
from tests.integration import make
from tests.integration.replayed import clean_target, file_of, line
from tests.replays import outcome

URL = "http://127.0.0.1:9"


@pytest.fixture
def incident_id(stores: Stores) -> int:
    return make.incident(stores)


@pytest.fixture
def target(stores: Stores) -> Target:
    return clean_target(stores, URL, "clean-a")


@pytest.fixture
def body(stores: Stores, incident_id: int, target: Target) -> dict[str, Any]:
    """A replay of three requests to a clean target."""
    artifact_id = file_of(stores, incident_id, (line(n) for n in range(3)))
    return {"artifact_id": artifact_id, "target_id": target.id}


def _ask(client: TestClient, incident_id: int, body: dict[str, Any], key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    url = f"/api/v1/incidents/{incident_id}/replays"
    return client.post(url, json=body, headers=headers)


@pytest.fixture
def replay_id(operator: TestClient, incident_id: int, body: dict[str, Any]) -> int:
    found: int = _ask(operator, incident_id, body).json()["replay"]["id"]
    return found


def test_a_replay_is_asked_for_and_told(
    operator: TestClient, reader: TestClient, incident_id: int, body: dict[str, Any]
) -> None:
    asked = _ask(operator, incident_id, {**body, "symptom": "hang", "allow": ["custom-code"]})

    assert asked.status_code == 202
    job, replay = asked.json()["job"], asked.json()["replay"]
    assert (job["kind"], job["state"]) == ("replay", "queued")
    assert (replay["symptom"], replay["symptom_by"], replay["state"]) == (
        "hang", "operator", "waiting",
    )  # fmt: skip
    assert replay["options"]["allow"] == ["custom-code"]
    told = reader.get(f"/api/v1/replays/{replay['id']}").json()
    assert (told["trials"], told["summary"], told["verdict"]) == ([], None, None)
    listed = reader.get(f"/api/v1/incidents/{incident_id}/replays").json()
    assert [one["id"] for one in listed["items"]] == [replay["id"]]


def test_the_symptom_follows_from_the_class_of_the_incident(
    operator: TestClient, incident_id: int, body: dict[str, Any]
) -> None:
    url = f"/api/v1/incidents/{incident_id}"
    operator.patch(url, json={"problem_class": "latency/throughput"})

    replay = _ask(operator, incident_id, body).json()["replay"]

    assert (replay["symptom"], replay["symptom_by"]) == ("latency", "rules")


def test_the_same_key_asks_once(
    operator: TestClient, stores: Stores, incident_id: int, body: dict[str, Any]
) -> None:
    first = _ask(operator, incident_id, body, key="k1")
    again = _ask(operator, incident_id, body, key="k1")

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    with reading(stores.engine) as session:
        assert len(session.exec(select(Replay)).all()) == 1


def test_a_reader_changes_nothing(
    reader: TestClient, incident_id: int, body: dict[str, Any], replay_id: int
) -> None:
    refused = [
        _ask(reader, incident_id, body),
        *(
            reader.post(f"/api/v1/replays/{replay_id}/{verb}", json={})
            for verb in ("start", "cancel", "resume")
        ),
    ]

    assert [one.status_code for one in refused] == [403] * 4


def test_a_target_that_is_not_clean_is_typed(
    operator: TestClient, stores: Stores, incident_id: int, body: dict[str, Any]
) -> None:
    with writing(stores.engine) as session:
        session.get_one(Target, body["target_id"]).clean = False

    bare = _ask(operator, incident_id, {**body, "confirm": True})  # a yes names nothing
    wrong = _ask(operator, incident_id, {**body, "confirm": "clean-b"})
    typed = _ask(operator, incident_id, {**body, "confirm": "clean-a"})

    assert [one.status_code for one in (bare, wrong, typed)] == [409, 409, 202]
    assert "type clean-a" in bare.json()["detail"]
    told = typed.json()["replay"]["confirmed"]
    assert [(one["name"], one["by"]) for one in told] == [("clean-a", "operator")]


@pytest.mark.parametrize(
    "more",
    [{"confirm": True}, {"confirm": None, "select": None}, {"confirm": []}, {"confirm": "clean-a"}],
    ids=["yes", "null", "none", "name"],
)
def test_a_clean_target_needs_no_name(
    operator: TestClient, incident_id: int, body: dict[str, Any], more: dict[str, Any]
) -> None:
    asked = _ask(operator, incident_id, {**body, **more})

    assert asked.status_code == 202, asked.text
    assert asked.json()["replay"]["selection"] == ""


def test_who_replayed_which_dump_stands_in_the_audit_log(
    stores: Stores, body: dict[str, Any], replay_id: int
) -> None:
    with reading(stores.engine) as session:
        query = select(AuditEvent).where(AuditEvent.action == "replay.send")
        [noted] = session.exec(query)
    assert (noted.actor, noted.subject) == ("user:operator", f"replay:{replay_id}")
    assert noted.detail["artifact_id"] == body["artifact_id"]


def test_a_payload_is_kept_and_replayed(
    operator: TestClient, stores: Stores, incident_id: int, target: Target
) -> None:
    payload = {"text": "The exact request.", "sampling_params": {"max_new_tokens": 3}}
    asked = _ask(operator, incident_id, {"payload": payload, "target_id": target.id})

    assert asked.status_code == 202
    replay = asked.json()["replay"]
    assert replay["dump_id"] is not None, "it is read like any file of recorded requests"
    with reading(stores.engine) as session:
        job = session.get_one(Job, asked.json()["job"]["id"])
        assert "exact request" not in orjson.dumps(job.arguments).decode()


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        pytest.param({"payload": {"text": "x"}}, 422, "one of the three", id="two-sources"),
        pytest.param({"artifact_id": None}, 422, "one of the three", id="no-source"),
        pytest.param({"artifact_id": 999}, 404, "artifact 999", id="no-such-artifact"),
        pytest.param({"artifact_id": None, "dump_id": 9}, 404, "dump 9", id="no-such-dump"),
        pytest.param({"target_id": 77}, 404, "target 77", id="no-such-target"),
        pytest.param({"select": "5:2"}, 422, "is empty", id="empty-range"),
        pytest.param({"select": "suspect"}, 409, "once the file is read", id="no-suspects-yet"),
        pytest.param({"speed": 0}, 422, "speed is 0", id="no-speed"),
        pytest.param({"sample": 2}, 422, "share", id="sample"),
        pytest.param(
            {"window": {"from_seconds": 5, "until_seconds": 5}}, 422, "ends before", id="window"
        ),
        pytest.param({"most_new_tokens": 10**9}, 422, "most_new_tokens", id="cap"),
        pytest.param({"trials": 1000}, 422, "trials", id="trials"),
        pytest.param({"allow": ["rid"]}, 422, "allow", id="not-allowable"),
        pytest.param({"priority": 1}, 422, "priority", id="unknown-field"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_reason(
    operator: TestClient,
    incident_id: int,
    body: dict[str, Any],
    changed: dict[str, Any],
    status: int,
    says: str,
) -> None:
    refused = _ask(operator, incident_id, {**body, **changed})

    assert refused.status_code == status, refused.text
    assert says in refused.text


def test_the_same_server_is_no_second_side(
    operator: TestClient, stores: Stores, incident_id: int, body: dict[str, Any]
) -> None:
    twin = clean_target(stores, URL, "clean-twin")

    refused = _ask(operator, incident_id, {**body, "other_target_id": twin.id})

    assert refused.status_code == 422
    assert "the same server" in refused.json()["detail"]


def test_a_second_replay_on_a_target_waits_for_a_person(
    operator: TestClient, incident_id: int, body: dict[str, Any], replay_id: int
) -> None:
    refused = _ask(operator, incident_id, body)

    assert refused.status_code == 409
    assert f"Replay {replay_id} is at work" in refused.json()["detail"]


def test_a_replay_that_waits_is_cancelled_and_resumed(operator: TestClient, replay_id: int) -> None:
    cancelled = operator.post(f"/api/v1/replays/{replay_id}/cancel").json()
    again = operator.post(f"/api/v1/replays/{replay_id}/cancel")
    resumed = operator.post(f"/api/v1/replays/{replay_id}/resume", json={}).json()

    assert (cancelled["job"]["state"], cancelled["replay"]["state"]) == ("cancelled", "cancelled")
    assert again.status_code == 409
    assert (resumed["job"]["state"], resumed["replay"]["state"]) == ("queued", "waiting")


def test_outcomes_come_in_pages_by_class_and_state(
    reader: TestClient, stores: Stores, replay_id: int
) -> None:
    def measured(index: int, *, lost: bool) -> tuple[Outcome, Recorded]:
        error = "stream-cut" if lost else None
        return (
            Outcome(index, f"r{index}", 200, error, None, 1000.0, index / 10, 0.5),  # type: ignore[arg-type]
            Recorded("finished", completion_tokens=4),
        )

    with writing(stores.engine) as session:
        pairs = [measured(n, lost=n % 3 == 0) for n in range(9)]
        replay_rows.put_outcomes(session, replay_id, 1, pairs)
    url = f"/api/v1/replays/{replay_id}/outcomes"

    first = reader.get(url, params={"limit": 4}).json()
    second = reader.get(url, params={"limit": 5, "cursor": first["next_cursor"]}).json()
    cut = reader.get(url, params={"error": "stream-cut"}).json()
    fine = reader.get(url, params={"state": "completed", "trial": 1}).json()

    assert [one["index"] for one in first["items"] + second["items"]] == list(range(9))
    assert second["next_cursor"] is None
    assert [one["index"] for one in cut["items"]] == [0, 3, 6]
    assert cut["items"][0]["recorded"]["completion_tokens"] == 4
    assert len(fine["items"]) == 6
    assert reader.get(url, params={"error": "made-up"}).status_code == 422
    assert reader.get(url, params={"cursor": "e30"}).status_code in (400, 422)
    assert reader.get("/api/v1/replays/99/outcomes").status_code == 404


PROMPT = "My name is Ada, and my card is 4111"


@pytest.mark.parametrize("who", ["reader", "operator"])
def test_words_of_a_target_that_quote_a_prompt_are_shown_to_nobody_in_passing(
    request: pytest.FixtureRequest, stores: Stores, replay_id: int, who: str
) -> None:
    """They are in the outcomes that are kept as raw evidence, for operators and with a note."""
    told: list[tuple[ErrorClass, int]] = [("bad-request", 400), ("aborted", 200)]
    pairs = [
        (outcome(n, error, status=status, says=f"Invalid: {PROMPT}", output_hash="h"), Recorded())
        for n, (error, status) in enumerate(told)
    ]
    with writing(stores.engine) as session:
        replay_rows.put_outcomes(session, replay_id, 1, pairs)
    client: TestClient = request.getfixturevalue(who)

    items = client.get(f"/api/v1/replays/{replay_id}/outcomes").json()["items"]
    page = client.get(f"/replays/{replay_id}/outcomes").text

    assert [one["says"] for one in items] == [
        "It says why in 44 characters, kept with the raw outcomes."
    ] * 2
    assert "output_hash" not in items[0]
    assert "It says why in 44 characters" in page
    for text in (orjson.dumps(items).decode(), page):
        assert "Ada" not in text
    with reading(stores.engine) as session:
        raw = [replay_rows.row_of(one, raw=True) for one in _rows(session, replay_id)]
    assert [PROMPT in one["says"] for one in raw] == [True, True]


def _rows(session: Session, replay_id: int) -> Sequence[ReplayOutcome]:
    return replay_rows.outcomes_of(session, replay_id).rows
