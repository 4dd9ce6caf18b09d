"""Files of recorded requests are told by their first bytes; other evidence is left alone."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from app.domain.dump_recognition import HEAD_BYTES, is_recorded
from tests import recorded

SHARED = Path(__file__).parents[3] / "shared"
DUMP = recorded.crash_dump(1, 0)
PAYLOAD = b'{"text": "hello", "sampling_params": {"max_new_tokens": 4}}'
CHAT = b'{"model": "m",\n "messages": [{"role": "user", "content": "hi"}]}'
LOG = b"[2026-11-30 12:00:00] Receive: obj=GenerateReqInput(rid='a', text='hi')\n"
ANSWER = b'{"text": "hi", "output_ids": [1], "meta_info": {"id": "a"}}'


def _zipped(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("readme.txt", b"about this")
        archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(DUMP, id="a-pickle"),
        pytest.param(b"\x80\x02]q\x00.", id="a-pickle-of-protocol-2"),
        pytest.param(b"(lp0\n.", id="a-pickle-of-protocol-0"),
        pytest.param(b"]q\x00.", id="a-pickle-of-protocol-1"),
        pytest.param(PAYLOAD, id="a-payload"),
        pytest.param(b'{"text": "hello"}', id="the-shortest-payload"),
        pytest.param(CHAT, id="a-chat-payload"),
        pytest.param(b"\n" + PAYLOAD + b"\n" + PAYLOAD, id="payloads-by-line"),
        pytest.param(LOG, id="a-request-log"),
        pytest.param(gzip.compress(DUMP), id="a-pickle-in-gzip"),
        pytest.param(_zipped("x", DUMP), id="a-pickle-in-a-zip"),
        pytest.param(_zipped("x", PAYLOAD, zipfile.ZIP_STORED), id="a-payload-stored-in-a-zip"),
        pytest.param(_zipped("a/crash.pkl", b""), id="a-zip-that-names-one"),
    ],
)
def test_requests_are_recognised_whatever_the_name(content: bytes) -> None:
    assert is_recorded(content[:HEAD_BYTES], "download")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x7fELF\x02\x01\x01", id="a-coredump"),
        pytest.param(gzip.compress(b"\x7fELF\x02\x01\x01"), id="a-coredump-in-gzip"),
        pytest.param(b'{"version": "0.5.9", "preferred_sampling_params": null}', id="server-info"),
        pytest.param(b'[{"dp_rank": 0, "num_running_reqs": 1}]', id="loads"),
        pytest.param(ANSWER, id="an-answer"),
        pytest.param(b"# HELP sglang:num_running_reqs\n", id="metrics"),
        pytest.param(b"Thread 4711 (idle): MainThread\n", id="stacks"),
        pytest.param(b"[ 12.3] NVRM: Xid 79\n", id="a-kernel-log"),
        pytest.param(_zipped("bundle.json", b"{}"), id="another-archive"),
        pytest.param(b"PK\x03\x04" + b"\xff" * 40, id="a-zip-that-lies"),
        pytest.param(b"\x1f\x8b" + b"\xff" * 40, id="broken-gzip"),
        pytest.param(b"\x80\x04hello", id="almost-a-pickle"),
    ],
)
def test_other_evidence_is_not_taken_for_requests(content: bytes) -> None:
    assert not is_recorded(content, "evidence.bin")


@pytest.mark.parametrize(
    "name", ["crash.pkl", "CRASH.PKL", "a.pickle", "a.jsonl", "a.pkl.gz", "a.jsonl.zst", "x.ndjson"]
)
def test_a_name_is_enough_so_that_what_is_wrong_inside_is_told(name: str) -> None:
    assert is_recorded(b"<!doctype html>", name)


def test_a_little_packed_file_is_not_unpacked_whole() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000 + PAYLOAD)
    assert not is_recorded(bomb, "bomb.gz")


def test_captured_dumps_are_recognised_without_their_names() -> None:
    dumps = sorted((SHARED / "captures/dumps").rglob("*.pkl"))
    if not dumps:
        pytest.skip("the shared folder with captured dumps is not here")
    assert [one.name for one in dumps if not is_recorded(_head(one), "x")] == []


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)
