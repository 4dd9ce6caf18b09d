"""A dump whose every word is hostile: nothing of it runs in a browser, and no prompt gets out."""

import io
import json
import re
import zipfile
from threading import Event, Thread
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.jobs.ingest import ingest
from app.jobs.work import Work
from app.store import attempts
from app.store.attempts import Attempt
from app.store.database import reading, writing
from app.store.dumps import get_dump
from app.store.stores import Stores
from app.store.tables import Incident, Job
from tests import make, recorded
from tests.captured import ATTACKS, needs
from tests.integration.make import now

SCRIPT = "<script>alert(1)</script>"
PICTURE = '"><img src=x onerror=alert(1)>'
WORDS = "CANARY-the-patient-said"
KEY = "sk-SECRETKEY-abcdef123456"


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


def _hostile() -> bytes:
    fields: dict[str, Any] = {
        "text": WORDS,
        "lora_path": f"/x/{PICTURE}",
        "custom_logit_processor": WORDS,
    }
    first = recorded.request(1, rid=f"{SCRIPT}{PICTURE}", **fields)
    first[1]["meta_info"]["finish_reason"] = {"type": SCRIPT, "message": WORDS}
    rows = [first, recorded.request(2, finished=False, text=WORDS, rid="../../\x1b[31m\u202e")]
    rows += [recorded.request(n, text=f"{WORDS} {n}") for n in range(3, 6)]
    told = {
        "server_args": {
            "api_key": KEY,
            "model_path": f"/models/{SCRIPT}",
            "version": PICTURE,
            "nested": {"list": [{"admin_api_key": KEY}]},
        },
        "config_updates": [("cli", {"api_key": KEY})],
        "resolved_config": {"api_key": KEY, "hf_token": KEY, "disaggregation_mode": SCRIPT},
        "launch_command": f"python -m sglang.launch_server --api-key={KEY} --tag {SCRIPT}",
        "requests": rows,
    }
    return recorded.pickled(told)


def _ingest(client: TestClient, stores: Stores, incident: Incident, content: bytes) -> int:
    url = f"/api/v1/incidents/{incident.id}/artifacts"
    made = client.post(url, files={"file": (f"{PICTURE}.pkl", content)}).json()
    with writing(stores.engine) as session:
        job = session.get_one(Job, get_dump(session, made["dump_id"]).job_id)
        attempt = Attempt(job.id or 0, job.key)
        claimed = attempts.claim(session, attempt, worker="test", places={"steps": 1}, at=now())
    assert claimed is not None
    assert ingest(Work(stores, claimed, attempt, Event())) is False
    dump_id: int = made["dump_id"]
    return dump_id


@pytest.fixture
def dump_id(operator: TestClient, stores: Stores, incident: Incident) -> int:
    return _ingest(operator, stores, incident, _hostile())


def _places(incident_id: int | None, dump_id: int) -> list[str]:
    api = f"/api/v1/dumps/{dump_id}"
    return [
        "/", f"/?q={WORDS}", f"/incidents/{incident_id}", f"/incidents/{incident_id}/timeline",
        f"/incidents/{incident_id}/dumps", f"/incidents/{incident_id}.json",
        f"/incidents/{incident_id}.md", f"/incidents/{incident_id}.txt",
        f"/reports/{incident_id}", f"/dumps/{dump_id}", f"/dumps/{dump_id}?suspect=true",
        f"/dumps/{dump_id}/requests/0", f"/dumps/{dump_id}/requests/1",
        f"/dumps/{dump_id}/choice?select=0:", f"/dumps/{dump_id}?rid=%3Cscript%3E",
        api, f"{api}/requests", f"{api}/requests/0", f"{api}/requests/1",
        f"/api/v1/incidents/{incident_id}", f"/api/v1/incidents/{incident_id}/timeline",
        f"/api/v1/incidents/{incident_id}/dumps", f"/api/v1/incidents?q={WORDS}",
        f"/api/v1/incidents/{incident_id}/artifacts", "/metrics",
    ]  # fmt: skip


def test_an_archive_with_hostile_names_is_unpacked_beside_it(
    operator: TestClient, reader: TestClient, stores: Stores, incident: Incident
) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"../../{SCRIPT}/a.pkl", recorded.crash_dump(3, 1))
        archive.writestr(f"{PICTURE}.txt", WORDS)
    dump_id = _ingest(operator, stores, incident, file.getvalue())

    listed = reader.get(f"/api/v1/incidents/{incident.id}/dumps").json()["items"]
    assert [one["name"] for one in listed][:1] == ["a.pkl"]
    assert len(listed) == 2
    page = reader.get(f"/dumps/{dump_id}")
    assert page.status_code == 200
    assert "is an archive of 2 files; 1 became dumps here" in page.text
    assert "no file of requests" in page.text
    for hostile in (SCRIPT, "<img src=x", WORDS):
        assert hostile not in page.text
        assert hostile not in reader.get(f"/incidents/{incident.id}").text


def test_no_place_shows_words_keys_or_markup_of_a_dump(
    reader: TestClient,
    incident: Incident,
    dump_id: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = 0
    for place in _places(incident.id, dump_id):
        answer = reader.get(place, follow_redirects=True)
        assert answer.status_code in (200, 404), place
        seen += answer.status_code == 200
        asked = place.count(WORDS)  # a search shows what was searched for
        assert asked or WORDS not in answer.text, place
        assert KEY not in answer.text, place
        if "html" in answer.headers["Content-Type"]:
            assert SCRIPT not in answer.text, place
            assert not re.search(r"<img src=x", answer.text), place
            assert "\u202e" not in answer.text, place
            assert "\x1b" not in answer.text, place
    assert seen > 18
    logged = capsys.readouterr()
    assert WORDS not in logged.out + logged.err
    assert KEY not in logged.out + logged.err


def test_neither_database_row_nor_audit_has_words_or_keys(
    admin: TestClient, stores: Stores, dump_id: int
) -> None:
    with reading(stores.engine) as session:
        dump = get_dump(session, dump_id)
        job = session.get_one(Job, dump.job_id)
        told = json.dumps([dump.document, dump.spread, dump.says, job.result, job.says])
    assert WORDS not in told
    assert KEY not in told
    for place in ("/audit", "/api/v1/audit"):
        answer = admin.get(place)
        assert WORDS not in answer.text
        assert KEY not in answer.text


def test_a_share_has_no_word_of_a_dump(
    operator: TestClient, anybody: TestClient, incident: Incident, dump_id: int
) -> None:
    url = f"/api/v1/incidents/{incident.id}/shares"
    made = operator.post(url, json={})
    assert made.status_code in (200, 201), made.text
    link = made.json().get("url") or made.json().get("link")
    shared = anybody.get(re.sub(r"^https?://[^/]+", "", link))
    assert shared.status_code == 200
    assert WORDS not in shared.text
    assert KEY not in shared.text
    assert SCRIPT not in shared.text


def test_another_site_unseals_nothing(operator: TestClient, dump_id: int) -> None:
    typed = {"tier": "T2", "reason": "because"}
    headers = {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.test"}
    for place in (f"/dumps/{dump_id}/requests/1", f"/dumps/{dump_id}/choice"):
        answer = operator.post(place, data={**typed, "select": "1"}, headers=headers)
        assert answer.status_code == 403
        assert WORDS not in answer.text


def test_the_raw_file_is_for_operators_and_never_rendered(
    reader: TestClient, operator: TestClient, stores: Stores, dump_id: int
) -> None:
    with reading(stores.engine) as session:
        artifact_id = get_dump(session, dump_id).artifact_id
    assert reader.get(f"/artifacts/{artifact_id}/content").status_code == 403
    assert reader.get(f"/api/v1/artifacts/{artifact_id}/content").status_code == 403
    assert WORDS not in reader.get(f"/artifacts/{artifact_id}").text
    raw = operator.get(f"/artifacts/{artifact_id}/content")
    assert "attachment" in raw.headers["Content-Disposition"]


def test_names_of_files_stay_names(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    for name in json.loads(needs(ATTACKS / "text" / "filenames.json").read_text()):
        asked: dict[str, Any] = {"name": name, "size_bytes": 5}
        begun = operator.post(f"/api/v1/incidents/{incident.id}/uploads", json=asked)
        assert begun.status_code in (201, 422), name
        if begun.status_code == 422:
            continue
        upload = begun.json()
        assert not {"/", "\\"} & set(upload["name"]), name
        url = f"/api/v1/uploads/{upload['id']}"
        operator.patch(url, content=b"%05d" % upload["id"], headers={"Upload-Offset": "0"})
        made = operator.post(f"{url}/finish").json()
        answer = operator.get(f"/artifacts/{made['id']}/content")
        assert answer.status_code == 200
        assert "Set-Cookie" not in answer.headers
        assert "attachment" in answer.headers["Content-Disposition"]
        page = operator.get(f"/artifacts/{made['id']}").text
        assert not {"\u202e", "\0"} & set(page)
        assert "<img src=x" not in page


def test_two_pieces_for_one_place_leave_one(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    asked = {"name": "a.bin", "size_bytes": 4_000_000}
    url = f"/api/v1/incidents/{incident.id}/uploads"
    upload_id = operator.post(url, json=asked).json()["id"]
    statuses: list[int] = []

    def send(letter: bytes) -> None:
        answer = operator.patch(
            f"/api/v1/uploads/{upload_id}",
            content=letter * 2_000_000,
            headers={"Upload-Offset": "0"},
        )
        statuses.append(answer.status_code)

    senders = [Thread(target=send, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()

    assert sorted(statuses) == [204, 409, 409]
    head = operator.head(f"/api/v1/uploads/{upload_id}")
    assert head.headers["Upload-Offset"] == "2000000"
