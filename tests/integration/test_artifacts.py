"""Stored bytes: whole or not at all, once, never served damaged, gone only on purpose."""

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from sqlmodel import select

from app.clients.bundle_files import write_archive
from app.domain.capture import Bundle, Capture, Outcome
from app.errors import Conflict, Damaged, Misconfigured, NoSpace, NotFound, TooLarge
from app.settings import Settings
from app.store import evidence
from app.store.artifacts import CHUNK_BYTES, ArtifactStore
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Artifact, AuditEvent, BundleRow, CaptureRow, TimelineEvent
from tests.integration import make

BODY = b"rank 3 waits in all_reduce\n" * 100_000  # more than two chunks
DIGEST = sha256(BODY).hexdigest()


@pytest.fixture(
    params=[
        pytest.param("local", id="local"),
        # The same code as S3, without a server: what is local-only in the store shows here.
        pytest.param("memory:///", id="memory"),
        pytest.param("s3", id="s3"),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    if request.param == "s3":
        request.getfixturevalue("s3_server")
    urls = {"local": None, "s3": f"s3://evidence/{tmp_path.name}"}
    return _open(tmp_path, storage_url=urls.get(request.param, request.param))


@pytest.fixture
def s3_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An S3 server with the bucket "evidence", where moto is installed."""
    moto = pytest.importorskip("moto.server", reason="moto, an S3 server, is not installed")
    server = moto.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "ENDPOINT_URL": f"http://{host}:{port}",
        "ALLOW_HTTP": "true",
        "ACCESS_KEY_ID": "test",
        "SECRET_ACCESS_KEY": "test",
        "REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    httpx.put(f"http://{host}:{port}/evidence").raise_for_status()
    yield
    server.stop()


def _open(folder: Path, **given: object) -> ArtifactStore:
    return ArtifactStore.open(Settings.read(data_dir=folder, **{"min_free_bytes": 0, **given}))


def _files(store: ArtifactStore) -> list[Path]:
    assert store.root is not None
    return [path for path in store.root.rglob("*") if path.is_file()]


def _pieces(body: bytes, size: int = 70_001) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


def test_what_is_put_comes_back_under_its_hash(store: ArtifactStore) -> None:
    stored = store.put(_pieces(BODY))
    assert (stored.sha256, stored.size_bytes) == (DIGEST, len(BODY))
    assert store.read(DIGEST, len(BODY)) == BODY
    assert b"".join(store.stream(DIGEST)) == BODY
    assert store.verify(DIGEST)


def test_an_empty_file_is_a_file(store: ArtifactStore) -> None:
    stored = store.put(b"")
    assert store.read(stored.sha256, 0) == b""
    assert list(store.stream(stored.sha256)) == []


def test_equal_bytes_are_stored_once(tmp_path: Path) -> None:
    store = _open(tmp_path)
    assert store.put(BODY) == store.put(_pieces(BODY))
    assert [path.parent.name + path.name for path in _files(store)] == [DIGEST]
    assert list(store.spool_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param(0, 1, id="first-byte"),
        pytest.param(CHUNK_BYTES - 1, CHUNK_BYTES + 1, id="over-a-chunk"),
        pytest.param(len(BODY) - 5, None, id="tail"),
        pytest.param(10, 10, id="nothing"),
        pytest.param(len(BODY) - 5, len(BODY) + 99, id="beyond-the-end"),
    ],
)
def test_a_range_is_those_bytes(store: ArtifactStore, start: int, end: int | None) -> None:
    store.put(BODY)
    assert b"".join(store.stream(DIGEST, start, end)) == BODY[start:end]


def test_a_file_over_the_cap_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = _open(tmp_path, max_artifact_bytes=1000)
    with pytest.raises(TooLarge):
        store.put(_pieces(BODY, 999))
    assert _files(store) == []
    assert list(store.spool_folder.iterdir()) == []


def test_nothing_is_written_where_space_must_stay_free(tmp_path: Path) -> None:
    store = _open(tmp_path, min_free_bytes=2**60)
    with pytest.raises(NoSpace, match="must stay free"):
        store.put(b"x")


def test_space_is_looked_at_again_while_a_large_file_comes(tmp_path: Path) -> None:
    store = _open(tmp_path)
    free = os.statvfs(tmp_path)
    floor = free.f_bavail * free.f_frsize - 64 * 2**20
    with pytest.raises(NoSpace):
        replace(store, min_free_bytes=floor).put(bytes(2**20) for _ in range(512))
    assert _files(store) == []


def test_damaged_bytes_are_not_served(tmp_path: Path) -> None:
    store = _open(tmp_path)
    path = store.local_path(store.put(BODY).sha256)
    assert path is not None
    path.write_bytes(BODY[:-1] + b"?")
    assert not store.verify(DIGEST)
    with pytest.raises(Damaged, match="no longer match"):
        store.read(DIGEST, len(BODY))
    served: list[bytes] = []
    with pytest.raises(Damaged):
        served.extend(store.stream(DIGEST))
    assert sum(map(len, served)) < len(BODY), "no client takes it for whole"


def test_missing_bytes_are_said_to_be_missing(store: ArtifactStore) -> None:
    assert not store.has(DIGEST)
    assert not store.verify(DIGEST)
    with pytest.raises(NotFound):
        store.stream(DIGEST)
    store.delete(DIGEST)


def test_a_read_is_bounded(store: ArtifactStore) -> None:
    store.put(BODY)
    with pytest.raises(TooLarge):
        store.read(DIGEST, len(BODY) - 1)


@pytest.mark.parametrize(
    "url", [pytest.param("ftp://host/folder", id="ftp"), pytest.param("folder", id="a-path")]
)
def test_an_address_that_is_no_store_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Misconfigured, match="STORAGE_URL"):
        _open(tmp_path, storage_url=url)


def _attach(stores: Stores, incident_id: int, body: bytes = BODY, name: str = "dmesg.txt") -> int:
    stored = stores.artifacts.put(body)
    with writing(stores.engine) as session:
        artifact = evidence.attach(
            session,
            stored,
            incident_id=incident_id,
            name=name,
            taken_from="upload from 10.0.0.5",
            actor=make.MIRA,
            at=make.NOON,
        )
    assert artifact.id is not None
    return artifact.id


def _purge(stores: Stores, artifact_id: int) -> None:
    evidence.purge(stores, artifact_id, actor=make.MIRA, reason="holds a prompt", at=make.now())


def test_an_attached_file_has_custody_and_is_told(any_stores: Stores) -> None:
    incident_id = make.incident(any_stores)
    artifact_id = _attach(any_stores, incident_id)
    with reading(any_stores.engine) as session:
        [artifact] = evidence.artifacts_of(session, incident_id)
        [event] = session.exec(select(TimelineEvent)).all()
        [line] = session.exec(select(AuditEvent)).all()
    assert (artifact.id, artifact.kind, artifact.tier) == (artifact_id, "not recognised yet", "T2")
    assert (artifact.taken_by, artifact.taken_from) == ("mira", "upload from 10.0.0.5")
    assert (event.kind, event.detail["sha256"]) == ("ArtifactAttached", DIGEST)
    assert (line.action, line.actor) == ("artifact.attach", "user:mira")


def test_purging_leaves_the_tombstone_and_no_bytes(any_stores: Stores) -> None:
    artifact_id = _attach(any_stores, make.incident(any_stores))
    _purge(any_stores, artifact_id)
    with reading(any_stores.engine) as session:
        artifact = evidence.get_artifact(session, artifact_id)
    assert (artifact.purged_by, artifact.purge_reason) == ("mira", "holds a prompt")
    assert artifact.sha256 == DIGEST
    assert not any_stores.artifacts.has(DIGEST)
    with pytest.raises(Conflict, match="purged already"):
        _purge(any_stores, artifact_id)


def test_bytes_that_another_artifact_needs_outlive_a_purge(any_stores: Stores) -> None:
    incident_id = make.incident(any_stores)
    first, second = _attach(any_stores, incident_id), _attach(any_stores, incident_id)
    _purge(any_stores, first)
    assert any_stores.artifacts.has(DIGEST)
    _purge(any_stores, second)
    assert not any_stores.artifacts.has(DIGEST)


def test_bytes_that_a_capture_needs_outlive_a_purge(any_stores: Stores) -> None:
    artifact_id = _attach(any_stores, make.incident(any_stores))
    _capture_of(any_stores, DIGEST)
    _purge(any_stores, artifact_id)
    assert any_stores.artifacts.has(DIGEST)


def _capture_of(stores: Stores, digest: str) -> None:
    with writing(stores.engine) as session:
        bundle = BundleRow(base_url="http://a", collected_at=make.NOON)
        session.add(bundle)
        session.flush()
        assert bundle.id is not None
        session.add(
            CaptureRow(
                bundle_id=bundle.id,
                name="ready",
                position=0,
                path="/ready",
                outcome="answered",
                sha256=digest,
                headers={},
                redacted=[],
            )
        )


def test_a_file_whose_equal_bytes_were_purged_meanwhile_is_not_recorded(
    any_stores: Stores,
) -> None:
    stored = any_stores.artifacts.put(BODY)
    any_stores.artifacts.delete(DIGEST)
    incident_id = make.incident(any_stores)
    with (
        pytest.raises(Conflict, match="purged in the same moment"),
        writing(any_stores.engine) as session,
    ):
        evidence.keep(
            session,
            stored,
            incident_id=incident_id,
            name="a",
            taken_from="upload",
            actor=make.MIRA,
            at=make.NOON,
        )


def test_verification_notes_damage_and_does_not_forget_when(any_stores: Stores) -> None:
    artifact_id = _attach(any_stores, make.incident(any_stores))
    assert evidence.verify(any_stores, artifact_id, at=make.NOON)
    path = any_stores.artifacts.local_path(DIGEST)
    assert path is not None
    path.write_bytes(b"short")
    first_seen = make.NOON + timedelta(hours=1)
    assert not evidence.verify(any_stores, artifact_id, at=first_seen)
    assert not evidence.verify(any_stores, artifact_id, at=first_seen + timedelta(hours=1))
    with reading(any_stores.engine) as session:
        artifact = evidence.get_artifact(session, artifact_id)
    assert artifact.damaged_at == first_seen


def test_the_sweep_removes_what_a_crash_left_and_nothing_else(any_stores: Stores) -> None:
    _attach(any_stores, make.incident(any_stores))
    orphan = any_stores.artifacts.put(b"no row was written")
    (any_stores.artifacts.spool_folder / "half").write_bytes(b"...")
    later = datetime.now(UTC) + timedelta(days=2)
    assert evidence.sweep(any_stores, untouched=timedelta(days=1), at=datetime.now(UTC)) == 0
    assert evidence.sweep(any_stores, untouched=timedelta(days=1), at=later) == 1
    assert any_stores.artifacts.has(DIGEST)
    assert not any_stores.artifacts.has(orphan.sha256)


def test_a_half_spooled_file_is_swept(tmp_path: Path) -> None:
    store = _open(tmp_path)
    half = store.spool_folder / "half"
    half.write_bytes(b"...")
    os.utime(half, (0, 0))
    (store.spool_folder / "still-coming").write_bytes(b"...")
    assert store.sweep_spool(untouched=timedelta(days=1)) == 1
    assert [path.name for path in store.spool_folder.iterdir()] == ["still-coming"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("../../etc/passwd", "passwd", id="parent-folders"),
        pytest.param("C:\\dumps\\crash.pkl", "crash.pkl", id="windows"),
        pytest.param("a\x00b\u202egpj.exe\n", "abgpj.exe", id="control-and-direction"),
        pytest.param("", "unnamed", id="empty"),
        pytest.param("x" * 5000 + ".pkl", "x" * 196 + ".pkl", id="long"),
    ],
)
def test_a_name_is_only_shown(name: str, shown: str) -> None:
    assert evidence.shown_name(name) == shown


def test_a_bundle_archive_is_recognised(any_stores: Stores) -> None:
    ready = Capture("ready", "/ready", Outcome.ANSWERED, status=200, body=b"OK")
    bundle = Bundle("http://decode-a", make.NOON, (ready,), made_by="test")
    stored = any_stores.artifacts.put(write_archive(bundle))
    found = evidence.recognise(any_stores, stored)
    assert found is not None
    assert found.captures[0].body == b"OK"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"just a log line\n", id="text"),
        pytest.param(b"PK\x03\x04" + b"\x00" * 100, id="broken-zip"),
        pytest.param(b"\x80\x04cos\nsystem\n(S'true'\ntR.", id="pickle"),
    ],
)
def test_what_is_no_bundle_is_kept_as_not_recognised(any_stores: Stores, content: bytes) -> None:
    assert evidence.recognise(any_stores, any_stores.artifacts.put(content)) is None


def test_an_archive_that_would_grow_without_bound_is_not_unpacked(any_stores: Stores) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for number in range(9):
            opened.writestr(f"part{number}.json", bytes(31 * 2**20))
    assert evidence.recognise(any_stores, any_stores.artifacts.put(archive.getvalue())) is None


def test_an_artifact_row_is_never_deleted(any_stores: Stores) -> None:
    _purge(any_stores, _attach(any_stores, make.incident(any_stores)))
    with reading(any_stores.engine) as session:
        assert len(session.exec(select(Artifact)).all()) == 1


def test_any_stored_file_can_be_had_as_a_file(store: ArtifactStore) -> None:
    kept = store.put(b"a coredump")
    with store.as_file(kept.sha256) as path:
        assert path.read_bytes() == b"a coredump"
    assert list(store.spool_folder.iterdir()) == []
    assert store.read(kept.sha256, 100) == b"a coredump"


def test_bytes_that_are_gone_are_no_file(store: ArtifactStore) -> None:
    with pytest.raises(NotFound), store.as_file("0" * 64):
        pass
