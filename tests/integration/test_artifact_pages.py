"""Artifacts: attached, shown with their custody, downloaded safely, compared, purged."""

import pytest
from fastapi.testclient import TestClient

from app.clients.bundle_files import write_archive
from app.domain.capture import Bundle
from app.store.audit import newest
from app.store.database import reading, writing
from app.store.evidence import attach
from app.store.stores import Stores
from app.store.tables import Artifact, Incident
from app.web.uploads import plain_name
from tests import bundles, make

TEXT = b"0123456789"


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


def artifact(stores: Stores, incident: Incident, data: bytes = TEXT, **given: str) -> int:
    values = {"name": "dmesg.txt", "tier": "T1", "media_type": "text/plain", **given}
    stored = stores.artifacts.put(data)
    assert incident.id is not None
    with writing(stores.engine) as session:
        row = attach(
            session,
            stored,
            incident_id=incident.id,
            actor=make.MIRA,
            taken_from="a test",
            at=make.NOON,
            **values,  # type: ignore[arg-type]
        )
    assert row.id is not None
    return row.id


def row_of(stores: Stores, artifact_id: int) -> Artifact:
    with reading(stores.engine) as session:
        return session.get_one(Artifact, artifact_id)


def damage(stores: Stores, artifact_id: int) -> None:
    path = stores.artifacts.local_path(row_of(stores, artifact_id).sha256)
    assert path
    path.chmod(0o600)
    path.write_bytes(b"9" * path.stat().st_size)


def audited(stores: Stores) -> list[str]:
    with reading(stores.engine) as session:
        return [line.action for line in newest(session, limit=20)]


def test_any_file_can_be_attached_and_is_kept_as_it_is(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    answer = operator.post(
        f"/incidents/{incident.id}/artifacts",
        files={"file": ("../../etc/dmesg.txt", TEXT, "text/html")},
    )

    assert answer.status_code == 303
    page = operator.get(answer.headers["location"]).text
    assert "<h1>dmesg.txt: not recognised yet</h1>" in page
    assert "artifact.attach" in audited(stores)


def test_a_bundle_that_is_recognised_is_opened_at_once(
    operator: TestClient, incident: Incident
) -> None:
    made = Bundle("http://far.example", bundles.NOON, tuple(bundles.serving(bundles.rank())))

    answer = operator.post(
        f"/incidents/{incident.id}/artifacts",
        files={"file": ("b.zip", write_archive(made), "application/zip")},
    )

    assert answer.headers["location"].startswith("/bundles/")
    assert operator.get(answer.headers["location"]).status_code == 200


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(b"--x\r\n\r\n", "multipart/form-data; boundary=x", id="cut-off"),
        pytest.param(b"--x--\r\n", "multipart/form-data; boundary=x", id="no-file"),
        pytest.param(b"hello", "multipart/form-data; boundary=x", id="not-a-form-at-all"),
        pytest.param(b"", "multipart/form-data", id="no-boundary"),
        pytest.param(b"", "multipart/form-data; boundary=" + "x" * 300, id="a-long-boundary"),
        pytest.param(b"a=b", "application/x-www-form-urlencoded", id="another-kind-of-form"),
    ],
)
def test_a_broken_upload_is_refused_and_leaves_nothing(
    operator: TestClient, stores: Stores, incident: Incident, body: bytes, content_type: str
) -> None:
    answer = operator.post(
        f"/incidents/{incident.id}/artifacts", content=body, headers={"Content-Type": content_type}
    )

    assert answer.status_code == 422
    assert list(stores.artifacts.spool_folder.iterdir()) == []
    assert list(stores.artifacts.listed()) == []


def test_a_reader_sends_nothing(reader: TestClient, stores: Stores, incident: Incident) -> None:
    answer = reader.post(f"/incidents/{incident.id}/artifacts", files={"file": ("a", TEXT)})

    assert answer.status_code == 403
    assert list(stores.artifacts.listed()) == []


def test_an_upload_to_no_incident_is_not_stored(operator: TestClient, stores: Stores) -> None:
    answer = operator.post("/incidents/99/artifacts", files={"file": ("a", TEXT)})

    assert answer.status_code == 404
    assert list(stores.artifacts.listed()) == []


def test_the_page_tells_custody(operator: TestClient, stores: Stores, incident: Incident) -> None:
    artifact_id = artifact(stores, incident, name="<b>\u202ex.pkl")

    page = operator.get(f"/artifacts/{artifact_id}").text

    row = row_of(stores, artifact_id)
    for told in (row.sha256, "a test", "mira", "T1", "10 bytes", "&lt;b&gt;"):
        assert told in page
    assert "\u202e" not in page


def test_a_download_is_an_attachment_that_a_browser_neither_shows_nor_runs(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    artifact_id = artifact(stores, incident, name="x.html", media_type="text/html")

    answer = reader.get(f"/artifacts/{artifact_id}/content")

    assert answer.content == TEXT
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith('attachment; filename="x.html"')
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("asked", "status", "told", "content"),
    [
        pytest.param("bytes=2-4", 206, "bytes 2-4/10", b"234", id="a-part"),
        pytest.param("bytes=-2", 206, "bytes 8-9/10", b"89", id="the-end"),
        pytest.param("bytes=50-", 416, "bytes */10", b"", id="outside"),
        pytest.param("bytes=0-1,3-4", 200, None, TEXT, id="several-parts-are-the-whole"),
    ],
)
def test_a_range_is_sent_alone(  # noqa: PLR0917
    reader: TestClient,
    stores: Stores,
    incident: Incident,
    asked: str,
    status: int,
    told: str | None,
    content: bytes,
) -> None:
    url = f"/artifacts/{artifact(stores, incident)}/content"

    answer = reader.get(url, headers={"Range": asked})

    assert (answer.status_code, answer.headers.get("content-range")) == (status, told)
    assert answer.content == content


def test_a_range_of_another_version_is_the_whole_file(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    url = f"/artifacts/{artifact(stores, incident)}/content"

    answer = reader.get(url, headers={"Range": "bytes=2-4", "If-Range": '"another"'})

    assert (answer.status_code, answer.content) == (200, TEXT)


def test_raw_evidence_is_for_operators_and_each_reading_is_noted(
    reader: TestClient, operator: TestClient, stores: Stores, incident: Incident
) -> None:
    artifact_id = artifact(stores, incident, tier="T2")
    url = f"/artifacts/{artifact_id}/content"

    assert reader.get(url).status_code == 403
    assert "download>Download" not in reader.get(f"/artifacts/{artifact_id}").text
    assert "artifact.read" not in audited(stores)
    assert operator.get(url).content == TEXT
    assert "artifact.read" in audited(stores)


def test_damaged_bytes_are_never_sent_as_if_they_were_whole(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    artifact_id = artifact(stores, incident)
    damage(stores, artifact_id)

    answer = operator.get(f"/artifacts/{artifact_id}/content")

    assert answer.status_code == 409
    assert b"9999" not in answer.content
    assert row_of(stores, artifact_id).damaged_at is not None


def test_comparing_with_the_hash_notes_what_it_found(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    artifact_id = artifact(stores, incident)
    damage(stores, artifact_id)

    assert operator.post(f"/artifacts/{artifact_id}/verify").status_code == 303
    assert "no longer matches its hash</h1>" in operator.get(f"/artifacts/{artifact_id}").text


def test_a_purge_leaves_a_tombstone_with_who_and_why(
    admin: TestClient, stores: Stores, incident: Incident
) -> None:
    artifact_id = artifact(stores, incident)

    answer = admin.post(f"/artifacts/{artifact_id}/purge", data={"reason": "names of people"})

    assert answer.status_code == 303
    page = admin.get(f"/artifacts/{artifact_id}").text
    assert "names of people" in page
    assert "Purged" in page
    assert admin.get(f"/artifacts/{artifact_id}/content").status_code == 409
    assert not stores.artifacts.has(row_of(stores, artifact_id).sha256)


def test_an_operator_does_not_purge(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    artifact_id = artifact(stores, incident)

    assert "Purge the bytes" not in operator.get(f"/artifacts/{artifact_id}").text
    answer = operator.post(f"/artifacts/{artifact_id}/purge", data={"reason": "because"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a.txt", "a.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a.txt", "a.txt"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("x" * 500, "x" * 200),
    ],
)
def test_a_name_keeps_its_last_part_only(given: str, kept: str) -> None:
    assert plain_name(given) == kept
