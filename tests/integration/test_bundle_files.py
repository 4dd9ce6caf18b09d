import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from app.clients.bundle_files import read, read_archive, write_archive, write_folder
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.redaction import keyed_fingerprint
from app.errors import Conflict, ConsoleError, Malformed, NotFound, TooLarge
from tests.integration.shared_tools import needs

FINGERPRINT = keyed_fingerprint(b"a key of this test")
NOON = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)
BUNDLE = Bundle(
    base_url="http://10.0.0.4:30000/prefix",
    collected_at=NOON,
    finished_at=NOON,
    interval_seconds=10.0,
    probe="auto",
    made_by="incident-console 0.1.0",
    problems=("one thing",),
    captures=(
        Capture(
            "ready", "/ready", Outcome.ANSWERED, 200, NOON, 0.01, headers={"server": "uvicorn"}
        ),
        Capture(
            "server_info", "/server_info", Outcome.TIMEOUT, None, NOON, 5.0, detail="No answer."
        ),
        Capture("metrics_1", "/metrics", Outcome.ANSWERED, 200, NOON, 0.1, b"a 1\n\xff\n"),
        Capture("model_info", "/model_info", Outcome.ANSWERED, 200, NOON, 0.1, b'{"a":1}'),
        Capture("health", "/health", Outcome.NOT_ASKED, detail="Not wanted."),
    ),
)


def opened(archive: bytes) -> Bundle:
    return read_archive(io.BytesIO(archive), fingerprint=FINGERPRINT)


def zipped(files: dict[str, bytes], prefix: str = "") -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, body in files.items():
            packed.writestr(prefix + name, body)
    return archive.getvalue()


def tarred(files: dict[str, bytes], mode: str, prefix: str = "bundle/") -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as packed:  # type: ignore[call-overload]
        for name, body in files.items():
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(body)
            packed.addfile(entry, io.BytesIO(body))
    return archive.getvalue()


def files_of(bundle: Bundle) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(write_archive(bundle))) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_a_bundle_comes_back_from_its_folder_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "bundle"
    write_folder(BUNDLE, folder)
    assert read(folder, fingerprint=FINGERPRINT) == BUNDLE
    assert sorted(file.name for file in folder.iterdir()) == [
        "manifest.json",
        "metrics_1.txt",
        "model_info.json",
    ]
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(zipped, id="zip"),
        pytest.param(lambda files: zipped(files, "bundle/"), id="zip-with-a-folder"),
        pytest.param(lambda files: tarred(files, "w"), id="tar"),
        pytest.param(lambda files: tarred(files, "w:gz", "./"), id="tar.gz"),
    ],
)
def test_a_bundle_comes_back_from_each_archive(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    assert opened(pack(files_of(BUNDLE))) == BUNDLE


def test_the_same_bundle_is_the_same_archive() -> None:
    assert write_archive(BUNDLE) == write_archive(BUNDLE)
    assert opened(write_archive(BUNDLE)) == BUNDLE


def test_a_folder_that_is_not_new_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(Conflict, match="not empty"):
        write_folder(BUNDLE, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_secret_that_another_tool_left_in_is_redacted_on_reading() -> None:
    files = files_of(BUNDLE) | {"model_info.json": b'{"api_key":"sk-live-AAAA1111"}'}
    bundle = opened(zipped(files))
    assert "AAAA1111" not in repr(bundle)
    model = bundle.capture("model_info")
    assert model
    assert model.redacted == ("/api_key",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({"captures": [5, {"name": "../x", "outcome": "answered"}]}, 2, id="entries"),
        pytest.param({"captures": [{"name": "a", "outcome": "odd"}]}, 1, id="outcome"),
        pytest.param({"captures": "none", "base_url": 5, "collected_at": "x"}, 0, id="types"),
        pytest.param(
            {"captures": [{"name": "ready", "outcome": "answered", "file": "f"}]}, 1, id="no-file"
        ),
        pytest.param(
            {
                "captures": [
                    {"name": "ready", "outcome": "answered", "status": 10**9, "seconds": -1}
                ]
            },
            0,
            id="figures",
        ),
    ],
)
def test_a_manifest_that_makes_no_sense_in_places_is_read_where_it_does(
    change: dict[str, object], problem: int
) -> None:
    manifest = {"format": "incident-console bundle", "format_version": 1, **change}
    bundle = opened(zipped({"manifest.json": orjson.dumps(manifest)}))
    assert len(bundle.problems) == problem
    assert {one.status for one in bundle.captures} <= {None}
    assert {one.seconds for one in bundle.captures} <= {None}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"a.txt": b"x"}, id="something-else"),
        pytest.param({"manifest.json": b"[1]"}, id="a-list"),
        pytest.param({"manifest.json": b"["}, id="no-json"),
        pytest.param({"manifest.json": b'{"format":"other"}'}, id="another-format"),
    ],
)
def test_what_is_no_bundle_is_malformed(files: dict[str, bytes]) -> None:
    with pytest.raises(Malformed):
        opened(zipped(files))


@pytest.mark.parametrize(
    "archive",
    [b"", b"PK\x03\x04nonsense", b"\x1f\x8bnonsense", b"plain text", b"\x28\xb5\x2f\xfd0000"],
    ids=["empty", "zip", "gzip", "text", "zstd"],
)
def test_what_is_no_archive_is_malformed(archive: bytes) -> None:
    with pytest.raises(Malformed):
        opened(archive)


def test_a_path_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read(tmp_path / "none", fingerprint=FINGERPRINT)


def test_links_pipes_and_strange_names_of_a_folder_are_left_out(tmp_path: Path) -> None:
    folder, secret = tmp_path / "bundle", tmp_path / "secret"
    write_folder(BUNDLE, folder)
    secret.write_text("top secret")
    (folder / "model_info.json").unlink()
    (folder / "model_info.json").symlink_to(secret)
    os.mkfifo(folder / "pipe.txt")
    (folder / "in\x1b[31m red.txt").write_text("x")
    bundle = read(folder, fingerprint=FINGERPRINT)
    assert "top secret" not in repr(bundle)
    assert len(bundle.problems) == 1 + 4  # its own, the link, the pipe, the name, the missing file


@pytest.mark.parametrize(
    "name", ["../x.txt", "/etc/x.txt", "a\\x.txt", "C:x.txt", "a/b/c.txt", ".hidden", "é.txt"]
)
def test_a_name_that_leads_elsewhere_is_left_out_of_an_archive(name: str) -> None:
    bundle = opened(zipped(files_of(BUNDLE) | {name: b"x"}))
    assert len(bundle.problems) == 2
    assert bundle.captures == BUNDLE.captures


def test_a_link_in_a_tar_is_left_out() -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as packed:
        link = tarfile.TarInfo("metadata.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    with pytest.raises(Malformed, match="Not a bundle"):
        opened(archive.getvalue())


def test_a_file_that_grows_too_large_is_left_out() -> None:
    bundle = opened(zipped(files_of(BUNDLE) | {"bomb.txt": bytes(40 << 20)}))
    assert "bomb.txt: more than 32 MiB; left out." in bundle.problems


def test_a_tar_that_grows_too_large_is_refused() -> None:
    bombs = {f"bomb{number}.txt": bytes(30 << 20) for number in range(5)}
    with pytest.raises(TooLarge):
        opened(tarred(bombs, "w:gz"))


def test_an_archive_of_too_many_files_is_refused() -> None:
    with pytest.raises(TooLarge, match="1000"):
        opened(zipped({f"{number}.txt": b"" for number in range(1001)}))


@pytest.mark.parametrize(
    "name",
    [
        "zip_names.zip",
        "zip_bomb_512MiB.zip",
        "zip_nested_16x512MiB.zip",
        "zip_70k_entries.zip",
        "gzip_bomb_1GiB.gz",
        "zstd_bomb_1GiB.zst",
    ],
)
def test_a_hostile_archive_ends_in_words(name: str) -> None:
    with pytest.raises(ConsoleError):
        read(needs("attacks", "archive", name), fingerprint=FINGERPRINT)


def test_a_bundle_of_the_public_tool_tells_in_which_order_it_failed() -> None:
    folder = Path(__file__).parents[1] / "data" / "bundle-of-the-public-tool"
    bundle = read(folder, fingerprint=FINGERPRINT)
    assert [(one.name, one.outcome.value, one.status) for one in bundle.captures] == [
        ("health", "answered", 200),
        ("health_generate", "answered", 503),
        ("metrics_1", "answered", 200),
        ("model_info", "answered", 200),
        ("server_info", "timeout", None),
        ("loads_all_1", "error", None),
        ("loads_core_1", "refused", None),
        ("hicache", "no access", 403),
    ]
    details = {one.name: one.detail for one in bundle.captures}
    assert "reset" in details["loads_all_1"]
    assert bundle.made_by == "incident_artifact_tool"
    assert bundle.base_url == "http://10.9.8.7:30000"
    assert bundle.collected_at == datetime(2026, 3, 8, 10, 15, tzinfo=UTC)
    assert "time zone" in bundle.problems[0]


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        pytest.param({"ok": True, "status": 200, "json": {"a": 1}}, "answered", id="good"),
        pytest.param({"ok": True, "status": 200, "text": "<html>"}, "rejected", id="no-json"),
        pytest.param({"ok": False, "status": 404, "error": "{}"}, "not offered", id="404"),
        pytest.param({"ok": False, "status": 401, "error": "{}"}, "no access", id="401"),
        pytest.param({"ok": False, "status": -1, "error": "timed out"}, "timeout", id="silence"),
        pytest.param({"ok": False, "status": -1, "error": 5}, "error", id="odd-error"),
        pytest.param({}, "error", id="empty"),
        pytest.param([], "rejected", id="a-list"),
        pytest.param("\ud800".encode("utf-8", "surrogatepass"), "rejected", id="not-utf-8"),
    ],
)
def test_each_answer_the_public_tool_keeps_has_its_outcome(content: object, outcome: str) -> None:
    body = content if isinstance(content, bytes) else orjson.dumps(content)
    bundle = opened(zipped({"metadata.json": b"{}", "server_info.json": body}))
    assert [one.outcome.value for one in bundle.captures] == [outcome]
