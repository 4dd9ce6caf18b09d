"""Uploads in pieces: begun, broken off, gone on with after a restart, sealed, given up."""

import fcntl
import hashlib
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.store import uploads
from app.store.database import reading, writing
from app.store.dump_tables import Upload
from app.store.stores import Stores
from app.store.tables import Incident
from tests import make, recorded
from tests.conftest import BASE_URL, Prepared
from tests.integration.make import now

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


def _begin(client: TestClient, incident_id: int | None, **told: Any) -> Any:
    url = f"/api/v1/incidents/{incident_id}/uploads"
    return client.post(url, json={"name": "a.bin", "size_bytes": len(CONTENT), **told})


def _add(client: TestClient, upload_id: int, data: bytes, offset: int) -> Any:
    url = f"/api/v1/uploads/{upload_id}"
    return client.patch(url, content=data, headers={"Upload-Offset": str(offset)})


def _offset(client: TestClient, upload_id: int) -> int:
    return int(client.head(f"/api/v1/uploads/{upload_id}").headers["Upload-Offset"])


def _files(stores: Stores) -> list[Path]:
    folder = stores.artifacts.spool_folder
    return list(folder.with_name(f"{folder.name}-uploads").iterdir())


def test_pieces_become_an_artifact_with_its_custody(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    begun = _begin(operator, incident.id, sha256=digest, media_type="text/x", name="../a b.bin")
    upload_id = begun.json()["id"]

    first = _add(operator, upload_id, CONTENT[:1000], 0)
    second = _add(operator, upload_id, CONTENT[1000:], 1000)
    made = operator.post(f"/api/v1/uploads/{upload_id}/finish")

    assert (begun.status_code, begun.json()["offset_bytes"]) == (201, 0)
    assert begun.headers["Location"] == f"/api/v1/uploads/{upload_id}"
    assert (first.status_code, first.headers["Upload-Offset"]) == (204, "1000")
    assert second.headers["Upload-Offset"] == str(len(CONTENT))
    assert made.status_code == 201
    told = made.json()
    assert (told["name"], told["sha256"], told["tier"]) == ("a b.bin", digest, "T2")
    assert (told["media_type"], told["size_bytes"]) == ("text/x", len(CONTENT))
    assert told["page"] == f"/artifacts/{told['id']}"
    assert operator.get(f"/api/v1/artifacts/{told['id']}/content").content == CONTENT
    assert _files(stores) == []


def test_finishing_twice_attaches_once(operator: TestClient, incident: Incident) -> None:
    upload_id = _begin(operator, incident.id).json()["id"]
    _add(operator, upload_id, CONTENT, 0)

    first, second = (operator.post(f"/api/v1/uploads/{upload_id}/finish") for _ in range(2))

    assert first.json() == second.json()
    listed = operator.get(f"/api/v1/incidents/{incident.id}/artifacts").json()
    assert len(listed["items"]) == 1
    assert _offset(operator, upload_id) == len(CONTENT)


def test_a_finish_that_was_cut_off_is_made_good(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    upload_id = _begin(operator, incident.id).json()["id"]
    _add(operator, upload_id, CONTENT, 0)
    first = operator.post(f"/api/v1/uploads/{upload_id}/finish").json()
    with writing(stores.engine) as session:  # as if it had ended before its last transaction
        session.get_one(Upload, upload_id).artifact_id = None

    again = operator.post(f"/api/v1/uploads/{upload_id}/finish").json()

    assert again["id"] == first["id"]


def test_a_dump_that_came_in_pieces_is_read(operator: TestClient, incident: Incident) -> None:
    content = recorded.crash_dump(3, 1)
    upload_id = _begin(operator, incident.id, size_bytes=len(content)).json()["id"]
    _add(operator, upload_id, content, 0)

    made = operator.post(f"/api/v1/uploads/{upload_id}/finish").json()

    assert (made["kind"], made["page"]) == ("dump", f"/dumps/{made['dump_id']}")
    assert operator.get(made["page"]).status_code == 200
    assert operator.get(f"/api/v1/dumps/{made['dump_id']}").json()["state"] == "waiting"


def test_an_upload_goes_on_after_a_restart_of_the_console(
    settings: Settings, prepared: Prepared
) -> None:
    settings.data_dir.mkdir()
    shutil.copy(prepared.file, settings.data_dir / "console.sqlite")
    with _console(settings, prepared) as client:
        opened = client.post("/api/v1/incidents", json={"title": "x"}).json()
        upload_id = _begin(client, opened["id"]).json()["id"]
        _add(client, upload_id, CONTENT[:5000], 0)
    with _console(settings, prepared) as client:
        assert _offset(client, upload_id) == 5000
        _add(client, upload_id, CONTENT[5000:], 5000)
        made = client.post(f"/api/v1/uploads/{upload_id}/finish").json()
    assert made["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def _console(settings: Settings, prepared: Prepared) -> TestClient:
    client = TestClient(create_app(settings), BASE_URL, follow_redirects=False)
    client.headers["Sec-Fetch-Site"] = "same-origin"
    client.cookies.set("session", prepared.cookies["operator"])
    return client


def test_a_piece_for_another_place_is_refused_and_told_where_to_go_on(
    operator: TestClient, incident: Incident
) -> None:
    upload_id = _begin(operator, incident.id).json()["id"]
    _add(operator, upload_id, CONTENT[:100], 0)

    early, late = _add(operator, upload_id, b"x", 0), _add(operator, upload_id, b"x", 500)

    assert [early.status_code, late.status_code] == [409, 409]
    assert "Go on at 100." in late.json()["detail"]
    assert _offset(operator, upload_id) == 100


def test_two_requests_do_not_write_at_once(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    upload_id = _begin(operator, incident.id).json()["id"]
    [file] = _files(stores)
    with file.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = _add(operator, upload_id, b"x", 0)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


def test_more_than_was_told_is_refused_and_less_is_not_sealed(
    operator: TestClient, incident: Incident
) -> None:
    upload_id = _begin(operator, incident.id, size_bytes=10).json()["id"]
    assert _add(operator, upload_id, b"x" * 11, 0).status_code == 413
    assert _add(operator, upload_id, b"x" * 9, 0).status_code == 204
    early = operator.post(f"/api/v1/uploads/{upload_id}/finish")
    assert (early.status_code, early.json()["detail"]) == (
        409,
        f"Upload {upload_id} has 9 of 10 bytes. Go on at 9.",
    )


def test_bytes_that_are_not_those_that_were_told_are_not_kept(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    upload_id = _begin(operator, incident.id, sha256="0" * 64).json()["id"]
    _add(operator, upload_id, CONTENT, 0)

    answer = operator.post(f"/api/v1/uploads/{upload_id}/finish")

    assert (answer.status_code, answer.json()["error"]) == (422, "rejected")
    assert operator.get(f"/api/v1/uploads/{upload_id}").status_code == 404
    assert _files(stores) == []
    assert operator.get(f"/api/v1/incidents/{incident.id}/artifacts").json()["items"] == []


@pytest.mark.parametrize(
    ("told", "status"),
    [
        pytest.param({"size_bytes": 0}, 422, id="empty"),
        pytest.param({"size_bytes": -1}, 422, id="less-than-nothing"),
        pytest.param({"size_bytes": 2**62}, 413, id="larger-than-is-kept"),
        pytest.param({"size_bytes": 2**63}, 422, id="beyond-64-bits"),
        pytest.param({"sha256": "Z" * 64}, 422, id="no-hash"),
        pytest.param({"tier": "T9"}, 422, id="no-tier"),
        pytest.param({"name": ""}, 422, id="no-name"),
        pytest.param({"path": "/etc"}, 422, id="an-unknown-field"),
    ],
)
def test_what_cannot_become_a_file_is_refused_before_the_first_byte(
    operator: TestClient, stores: Stores, incident: Incident, told: dict[str, Any], status: int
) -> None:
    _begin(operator, incident.id)
    before = len(_files(stores))
    assert _begin(operator, incident.id, **told).status_code == status
    assert len(_files(stores)) == before


def test_an_upload_that_the_disk_has_no_room_for_is_not_begun(
    settings: Settings, prepared: Prepared
) -> None:
    free_bytes = shutil.disk_usage(settings.data_dir.parent).free
    tight = settings.model_copy(update={"min_free_bytes": free_bytes * 2})
    tight.data_dir.mkdir()
    shutil.copy(prepared.file, tight.data_dir / "console.sqlite")
    with _console(tight, prepared) as client:
        opened = client.post("/api/v1/incidents", json={"title": "x"}).json()
        answer = _begin(client, opened["id"])
    assert (answer.status_code, answer.json()["error"]) == (507, "no-space")


def test_a_bounded_number_is_under_way_at_once(operator: TestClient, incident: Incident) -> None:
    begun = [_begin(operator, incident.id) for _ in range(uploads.MOST_OPEN + 1)]
    assert [one.status_code for one in begun[-2:]] == [201, 409]
    upload_id = begun[0].json()["id"]
    assert operator.delete(f"/api/v1/uploads/{upload_id}").status_code == 204
    assert _begin(operator, incident.id).status_code == 201


@pytest.mark.parametrize("act", ["begin", "look", "add", "finish", "remove"])
def test_only_who_began_an_upload_goes_on_with_it(
    reader: TestClient, operator: TestClient, admin: TestClient, incident: Incident, act: str
) -> None:
    upload_id = _begin(operator, incident.id).json()["id"]
    url = f"/api/v1/uploads/{upload_id}"
    acts = {
        "begin": lambda client: _begin(client, incident.id),
        "look": lambda client: client.get(url),
        "add": lambda client: _add(client, upload_id, b"x", 0),
        "finish": lambda client: client.post(f"{url}/finish"),
        "remove": lambda client: client.delete(url),
    }
    assert acts[act](reader).status_code == 403
    assert acts[act](admin).status_code == (201 if act == "begin" else 403)
    assert _offset(operator, upload_id) == 0


def test_what_nobody_goes_on_with_is_removed_and_nothing_else(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    idle, fresh, done = (_begin(operator, incident.id).json()["id"] for _ in range(3))
    _add(operator, done, CONTENT, 0)
    made = operator.post(f"/api/v1/uploads/{done}/finish").json()
    with writing(stores.engine) as session:
        for upload_id in (idle, done):
            upload = session.get_one(Upload, upload_id)
            upload.touched_at = now() - uploads.IDLE_KEPT - timedelta(minutes=1)
    later = now() + uploads.IDLE_KEPT - timedelta(minutes=1)

    uploads.sweep(stores, at=now())
    assert [operator.get(f"/api/v1/uploads/{n}").status_code for n in (idle, fresh)] == [404, 200]
    assert len(_files(stores)) == 2, "a file is left for a while after its row"

    uploads.sweep(stores, at=later + timedelta(minutes=2))
    with reading(stores.engine) as session:
        assert session.get(Upload, fresh) is None
    assert _files(stores) == []
    assert operator.get(f"/api/v1/artifacts/{made['id']}/content").content == CONTENT


@pytest.mark.parametrize("upload_id", [0, 999, 2**63, 2**80])
def test_an_upload_that_is_not_there_is_not_found(operator: TestClient, upload_id: int) -> None:
    assert operator.get(f"/api/v1/uploads/{upload_id}").status_code == 404
    assert _add(operator, upload_id, b"x", 0).status_code == 404
