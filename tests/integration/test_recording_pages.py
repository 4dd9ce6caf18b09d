"""Recording requests and keeping the exact request, from the pages and from the API."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.jobs.engine import Engine
from app.store.database import reading, writing
from app.store.evidence import artifacts_of
from app.store.stores import Stores
from app.store.tables import AuditEvent, BundleRow, Target
from tests import make as rows
from tests.integration import make
from tests.integration.scripted_target import ScriptedTarget, answers, scripted_target
from tests.waiting import until

PATH = "/configure_logging"


@pytest.fixture
def server() -> Iterator[ScriptedTarget]:
    with scripted_target({PATH: answers(b"")}) as target:
        yield target


@pytest.fixture
def incident_id(stores: Stores, server: ScriptedTarget) -> int:
    target = make.target(stores, server.base_url, name="decode <a>")
    row = rows.incident(stores, "It is slow", target)
    assert row.id is not None
    return row.id


def _about(stores: Stores, **summary: object) -> None:
    """What the newest bundle of the target told."""
    with writing(stores.engine) as session:
        target = session.exec(select(Target)).one()
        bundle = BundleRow(
            target_id=target.id,
            base_url=target.base_url,
            collected_at=make.now(),
            summary=summary,
        )
        session.add(bundle)
        session.flush()
        target.last_bundle_id = bundle.id


def _form(**given: object) -> dict[str, object]:
    told = {"target_id": 1, "folder": "/var/dumps", "threshold": 50, "minutes": 10}
    return {**told, "confirm": "decode <a>", **given}


def test_the_form_shows_to_the_letter_what_is_sent_and_sends_nothing(
    client: TestClient, server: ScriptedTarget, incident_id: int
) -> None:
    asked = {"folder": "/var/dumps", "threshold": 7, "minutes": 30}
    page = client.get(f"/incidents/{incident_id}/recording", params=asked).text
    assert f"POST {server.base_url}{PATH}" in page
    on = '{"dump_requests_folder":"/var/dumps","dump_requests_threshold":7}'
    assert on.replace('"', "&#34;") in page
    assert "Record for 30 min" in page
    assert "No admin token is stored" in page
    assert "A request that never finishes." in page
    assert server.asked == []


def test_the_threshold_follows_from_the_newest_bundle(
    client: TestClient, stores: Stores, incident_id: int
) -> None:
    page = client.get(f"/incidents/{incident_id}/recording").text
    assert "is not known, so this is a cautious default" in page
    _about(stores, frontend="python", latency={"window_seconds": 10.0, "e2e": {"n": 120}})
    page = client.get(f"/incidents/{incident_id}/recording").text
    assert "saw 12 requests finish a second" in page
    assert 'name="threshold" type="number" value="60"' in page


def test_a_rust_ingress_has_no_button(client: TestClient, stores: Stores, incident_id: int) -> None:
    _about(stores, frontend="rust")
    page = client.get(f"/incidents/{incident_id}/recording").text
    assert "writes no dump of any kind" in page
    assert "Record for" not in page
    answer = client.post(f"/incidents/{incident_id}/recording", data=_form())
    assert answer.status_code == 409


@pytest.mark.parametrize("typed", ["", "decode", "yes"])
def test_it_is_not_switched_on_without_the_name_of_the_target(
    client: TestClient, server: ScriptedTarget, incident_id: int, typed: str
) -> None:
    answer = client.post(f"/incidents/{incident_id}/recording", data=_form(confirm=typed))
    assert answer.status_code == 409
    assert "Type the name of the target" in answer.text
    assert server.asked == []


def test_a_reader_neither_sees_the_form_nor_records(
    reader: TestClient, server: ScriptedTarget, incident_id: int
) -> None:
    here = f"/incidents/{incident_id}"
    assert reader.get(f"{here}/recording").status_code == 403
    assert reader.post(f"{here}/recording", data=_form()).status_code == 403
    assert reader.post(f"{here}/recording/off").status_code == 403
    assert reader.post(f"{here}/payload", data={"text": "{}"}).status_code == 403
    assert reader.get(f"{here}/recordings").status_code == 200
    assert server.asked == []


def test_a_recording_is_shown_while_it_is_on_and_switched_off_by_its_button(
    client: TestClient, stores: Stores, server: ScriptedTarget, incident_id: int
) -> None:
    engine = Engine.start(stores)
    try:
        answer = client.post(f"/incidents/{incident_id}/recording", data=_form())
        assert answer.headers["location"] == f"/incidents/{incident_id}#recordings"
        job_id = client.get(f"/api/v1/incidents/{incident_id}/capture").json()["items"][0]["job_id"]
        until(lambda: client.get(f"/api/v1/jobs/{job_id}").json()["due_at"])
        _shows_it(client, incident_id)
        assert client.get(f"/incidents/{incident_id}/recording").text.count("recorded already") == 1
        client.post(f"/incidents/{incident_id}/recording/off", data={"target_id": 1})
        make.until(stores, job_id, "succeeded")
    finally:
        engine.stop()
    sent = [orjson.loads(body) for _, body in server.bodies]
    assert sent[1:] == [{"dump_requests_folder": ""}]
    page = client.get(f"/incidents/{incident_id}").text
    assert "Switch off now" not in page
    assert "Request dumping is off at decode &lt;a&gt;" in page
    with reading(stores.engine) as session:
        actions = [one.action for one in session.exec(select(AuditEvent))]
    assert actions.count("recording.changed") == 2
    assert "recording.off" in actions


def _shows_it(client: TestClient, incident_id: int) -> None:
    part = client.get(f"/incidents/{incident_id}/recordings").text
    assert 'hx-trigger="tick from:body"' in part
    page = client.get(f"/incidents/{incident_id}").text
    assert "Switch off now" in page
    assert "Link a server" in page
    assert "Request dumping" in client.get("/targets/1").text


def test_the_api_takes_folder_threshold_and_duration_and_off(
    client: TestClient, server: ScriptedTarget, incident_id: int
) -> None:
    url = f"/api/v1/incidents/{incident_id}/capture"
    asked = {"folder": "/var/dumps", "threshold": 50, "duration_seconds": 60}
    answer = client.post(url, json=asked)
    assert answer.status_code == 202, answer.text
    told = answer.json()
    assert told["job"]["kind"] == "record"
    assert (told["capture"]["phase"], told["capture"]["threshold"]) == ("asked", 50)
    assert client.post(url, json=asked).status_code == 409
    off = client.post(url, json={"off": True})
    assert off.json()["job"]["id"] == told["job"]["id"]
    for wrong in ({"folder": "x"}, {"threshold": 0}, {"duration_seconds": 1e9}, {"target_id": 9}):
        assert client.post(url, json={**asked, **wrong}).status_code in (400, 404, 422)
    assert server.asked == []


@pytest.mark.parametrize("way", ["page", "api"])
def test_the_exact_request_is_kept_raw_and_without_its_credentials(
    client: TestClient, stores: Stores, incident_id: int, way: str
) -> None:
    text = (
        "curl http://gpu-14:30000/generate -H 'Authorization: Bearer geheim123' "
        '-d \'{"text": "Say hi", "api_key": "geheim456"}\''
    )
    if way == "api":
        answer = client.post(f"/api/v1/incidents/{incident_id}/payloads", json={"text": text})
        assert answer.status_code == 201, answer.text
        assert answer.json()["redacted"] == ["/api_key"]
        assert answer.json()["left_out"] == ["authorization"]
    else:
        answer = client.post(f"/incidents/{incident_id}/payload", data={"text": text})
        assert answer.status_code == 303, answer.text
    with reading(stores.engine) as session:
        [artifact] = artifacts_of(session, incident_id)
    kept = stores.artifacts.read(artifact.sha256, 10_000)
    assert artifact.tier == "T2"
    assert orjson.loads(kept)["payload"]["text"] == "Say hi"
    assert b"geheim" not in kept
    everything = b"".join(path.read_bytes() for path in _files(stores))
    assert b"geheim" not in everything


def _files(stores: Stores) -> list[Path]:
    return [path for path in stores.settings.data_dir.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("curl http://h/generate -d @body.json", "which is not here", id="file"),
        pytest.param("curl http://h/generate -d $BODY", "from elsewhere", id="variable"),
        pytest.param("not json", "Not JSON", id="text"),
    ],
)
def test_what_cannot_be_kept_says_why(
    client: TestClient, incident_id: int, text: str, says: str
) -> None:
    answer = client.post(f"/incidents/{incident_id}/payload", data={"text": text})
    assert answer.status_code in (400, 422)
    assert says in answer.text
