"""The API of artifacts: attach, read, download, compare, purge."""

import pytest
from fastapi.testclient import TestClient

from app.clients.bundle_files import write_archive
from app.domain.capture import Bundle
from app.store.stores import Stores
from app.store.tables import Incident
from app.web.uploads import UploadForm
from tests import bundles, make


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


def test_a_file_is_attached_and_answered_with_its_custody(
    operator: TestClient, incident: Incident
) -> None:
    answer = operator.post(
        f"/api/v1/incidents/{incident.id}/artifacts",
        files={"file": ("dmesg.txt", b"oops", "text/plain")},
        data={"tier": "T1"},
    )

    assert answer.status_code == 201
    made = answer.json()
    assert made["kind"] == "not recognised yet"
    assert (made["name"], made["size_bytes"], made["tier"]) == ("dmesg.txt", 4, "T1")
    assert made["bundle_id"] is None
    assert operator.get(f"/api/v1/artifacts/{made['id']}").json() == made
    listed = operator.get(f"/api/v1/incidents/{incident.id}/artifacts").json()
    assert listed == {"items": [made], "next_cursor": None}


def test_a_pushed_bundle_is_recognised(operator: TestClient, incident: Incident) -> None:
    made = Bundle("http://far.example", bundles.NOON, tuple(bundles.serving(bundles.rank())))

    answer = operator.post(
        f"/api/v1/incidents/{incident.id}/artifacts",
        files={"file": ("b.zip", write_archive(made), "application/zip")},
    )

    assert (answer.status_code, answer.json()["kind"]) == (201, "bundle")
    summary = operator.get(f"/api/v1/bundles/{answer.json()['bundle_id']}/summary").json()
    assert summary["base_url"] == "http://far.example"


@pytest.mark.parametrize("piece_bytes", [1, 7, 64, 4096])
def test_a_form_is_read_in_pieces_of_any_size(stores: Stores, piece_bytes: int) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="tier"\r\n\r\nT1\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a\xc3\xbc.bin"\r\n'
        b"Content-Type: application/x-thing\r\n\r\n\r\n--c\r\n--\r\n\x00\xff\r\n--b--\r\n"
    )

    with stores.artifacts.spool() as spool:
        form = UploadForm(b"b", spool)
        for start in range(0, len(body), piece_bytes):
            form.write(body[start : start + piece_bytes])
        stored = stores.artifacts.keep(spool)

    assert form.ended
    assert (form.name, form.media_type) == ("aü.bin", "application/x-thing")
    assert form.fields == {"tier": b"T1"}
    assert stores.artifacts.read(stored.sha256, 1000) == b"\r\n--c\r\n--\r\n\x00\xff"


def test_the_same_key_attaches_once(operator: TestClient, incident: Incident) -> None:
    send = {"files": {"file": ("a", b"x")}, "headers": {"Idempotency-Key": "k"}}

    first, second = (
        operator.post(f"/api/v1/incidents/{incident.id}/artifacts", **send) for _ in range(2)
    )

    assert first.json() == second.json()
    listed = operator.get(f"/api/v1/incidents/{incident.id}/artifacts").json()
    assert len(listed["items"]) == 1


@pytest.mark.parametrize(
    ("send", "status"),
    [
        pytest.param({"data": {"tier": "T1"}}, 422, id="no-form-with-a-file"),
        pytest.param({"files": {"other": ("a", b"x")}}, 422, id="under-another-name"),
        pytest.param(
            {"files": {"file": ("a", b"x")}, "data": {"tier": "T9"}}, 422, id="an-unknown-tier"
        ),
    ],
)
def test_what_is_no_upload_is_refused_in_words(
    operator: TestClient, incident: Incident, send: dict[str, object], status: int
) -> None:
    answer = operator.post(f"/api/v1/incidents/{incident.id}/artifacts", **send)

    assert answer.status_code == status
    assert {"error", "detail"} <= answer.json().keys()


def test_the_content_is_sent_in_ranges(operator: TestClient, incident: Incident) -> None:
    made = operator.post(
        f"/api/v1/incidents/{incident.id}/artifacts", files={"file": ("a", b"0123456789")}
    ).json()

    part = operator.get(f"/api/v1/artifacts/{made['id']}/content", headers={"Range": "bytes=3-5"})

    assert (part.status_code, part.content) == (206, b"345")
    assert part.headers["etag"] == f'"{made["sha256"]}"'


def test_compared_and_purged(admin: TestClient, incident: Incident) -> None:
    made = admin.post(
        f"/api/v1/incidents/{incident.id}/artifacts", files={"file": ("a", b"x")}
    ).json()
    url = f"/api/v1/artifacts/{made['id']}"

    assert admin.post(f"{url}/verify").json()["damaged_at"] is None
    purged = admin.post(f"{url}/purge", json={"reason": "a name in it"}).json()

    assert (purged["purged_by"], purged["purge_reason"]) == ("admin", "a name in it")
    assert admin.get(f"{url}/content").status_code == 409
    assert admin.post(f"{url}/purge", json={"reason": "again"}).status_code == 409


@pytest.mark.parametrize("act", ["verify", "purge"])
def test_a_reader_changes_nothing(
    reader: TestClient, operator: TestClient, incident: Incident, act: str
) -> None:
    made = operator.post(
        f"/api/v1/incidents/{incident.id}/artifacts", files={"file": ("a", b"x")}
    ).json()

    answer = reader.post(f"/api/v1/artifacts/{made['id']}/{act}", json={"reason": "because"})

    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
