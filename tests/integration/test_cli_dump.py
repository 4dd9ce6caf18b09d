"""``incident-console dump``: what a person gets for dumps, folders and archives."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.dump_layouts import ServerArgs, pickled, record

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
KEYS = {
    "file", "sha256", "kind", "format", "sglang_version", "model_path", "topology",
    "launch_command", "requests_total", "finished", "unfinished", "aborted", "span_seconds",
    "arrival_rate_per_second", "prompt_tokens", "completion_tokens", "streaming", "features",
    "suspects", "requests", "blocked", "problems", "truncated", "redacted",
}  # fmt: skip
CRASH = {
    "server_args": ServerArgs(model_path="/m", tp_size=8, api_key="sk-FAKE-1"),
    "requests": [*(record(n) for n in range(4)), record(9, {}, lora_path="a")],
    "launch_command": "python -m sglang.launch_server --api-key sk-FAKE-1",
}


def dump(*arguments: str | Path, home: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "app", "dump", *map(str, arguments)],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(home / "config")},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    path = tmp_path / "crash.pkl"
    path.write_bytes(pickled(CRASH))
    return path


def test_a_dump_is_told_as_text_with_the_suspects_first(crash: Path, tmp_path: Path) -> None:
    status, text, errors = dump("summarize", crash, home=tmp_path)
    lines = text.splitlines()

    assert (status, errors) == (0, "")
    assert lines[0] == "crash dump: 5 requests, 1 unfinished when the server died"
    assert "most likely the trigger (supported): unfinished when the server died" in text
    assert text.index("Look at these first") < text.index("prompt tokens")
    assert "sk-FAKE-1" not in text
    assert "‹redacted:" in text


def test_a_dump_is_one_document_with_every_key_of_the_interface(
    crash: Path, tmp_path: Path
) -> None:
    status, text, _ = dump("summarize", crash, "--json", "--max-requests", "2", home=tmp_path)
    document = json.loads(text)

    assert status == 0
    assert document.keys() >= KEYS
    assert [one["index"] for one in document["requests"]] == [0, 4]
    assert "preview" not in document["requests"][0]
    assert document["requests"][0].keys() >= {
        "index", "rid", "state", "prompt_tokens", "completion_tokens", "stream", "started_at",
        "elapsed_seconds", "finish_reason", "sampling",
    }  # fmt: skip
    assert document["suspects"][0] == {
        "index": 4,
        "rid": "rid-9",
        "why": document["suspects"][0]["why"],
        "trigger": "supported",
    }


def test_marks_of_secrets_are_the_same_from_run_to_run(crash: Path, tmp_path: Path) -> None:
    commands = {
        json.loads(dump("summarize", crash, "--json", home=tmp_path)[1])["launch_command"]
        for _ in range(2)
    }

    assert len(commands) == 1


def test_above_the_lowest_tier_there_is_a_preview(crash: Path, tmp_path: Path) -> None:
    text = dump("summarize", crash, "--json", "--tier", "T1", home=tmp_path)[1]

    assert json.loads(text)["requests"][0]["preview"] == "prompt 0"


def test_an_unreadable_file_is_status_one_with_its_document(tmp_path: Path) -> None:
    path = tmp_path / "cut.pkl"
    path.write_bytes(pickled(CRASH)[:-120])
    status, text, errors = dump("summarize", path, "--json", home=tmp_path)
    document = json.loads(text)

    assert status == 1
    assert (document["kind"], document["truncated"]) == ("unreadable", True)
    assert document["requests_total"] == 4
    assert errors.startswith(f"{path}: Truncated: ")
    assert errors.count("\n") == 1


def test_a_folder_is_every_dump_in_it_and_what_they_share(crash: Path, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    again = tmp_path / "host" / "again.pkl"
    again.write_bytes(pickled([record(2)]))
    (tmp_path / "notes.txt").write_text("not asked for")
    (tmp_path / "link.pkl").symlink_to(crash)
    status, text, _ = dump("summarize", tmp_path, "--json", home=tmp_path)
    document = json.loads(text)

    assert status == 0
    assert [one["file"] for one in document["files"]] == [str(crash), str(again)]
    assert [one["rid"] for one in document["shared_rids"]] == ["rid-2"]
    assert document["files"][1]["suspects"][0]["why"] == f"its identifier is in {crash} too"


def test_a_file_that_is_gone_keeps_nobody_from_reading_the_others(
    crash: Path, tmp_path: Path
) -> None:
    status, out, errors = dump("summarize", tmp_path / "gone.pkl", crash, "--json", home=tmp_path)

    files = json.loads(out)["files"]
    assert (status, [one["kind"] for one in files]) == (1, ["unreadable", "crash dump"])
    assert files[0]["problems"] == [f"There is no file {tmp_path / 'gone.pkl'}."]
    assert f"There is no file {tmp_path / 'gone.pkl'}." in errors


def test_an_archive_of_several_is_read_file_by_file(crash: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(crash, "one/crash.pkl")
        archive.writestr("payload.json", '{"text": "hello"}')
    status, text, _ = dump("summarize", path, "--json", home=tmp_path)
    files = json.loads(text)["files"]

    assert status == 0
    assert [one["kind"] for one in files] == ["crash dump", "requests"]
    assert files[0]["file"] == f"{path}/one/crash.pkl"
    assert files[0]["format"].startswith("zip: ")


@pytest.mark.parametrize("tier", ["T0", "T2"])
def test_an_export_is_a_private_file_that_reads_again(
    crash: Path, tmp_path: Path, tier: str
) -> None:
    out = tmp_path / "out.jsonl"
    status, text, errors = dump("export", crash, "--out", out, "--tier", tier, home=tmp_path)

    assert (status, text) == (0, "")
    assert errors == f"{out}: 5 requests, tier {tier}\n"
    assert out.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["index"] for line in lines] == [0, 1, 2, 3, 4]
    assert ("prompt 1" in out.read_text()) is (tier == "T2")
    assert json.loads(dump("summarize", out, "--json", home=tmp_path)[1])["unfinished"] == 1


def test_an_export_never_writes_over_a_file(crash: Path, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    out.write_text("mine")
    status, _, errors = dump("export", crash, "--out", out, home=tmp_path)

    assert status == 1
    assert "is there already" in errors
    assert out.read_text() == "mine"


def test_usage_is_status_two_and_a_missing_file_status_one(tmp_path: Path) -> None:
    assert dump("summarize", home=tmp_path)[0] == 2
    assert dump("summarize", "x", "--tier", "T9", home=tmp_path)[0] == 2
    status, text, errors = dump("summarize", tmp_path / "nothing.pkl", "--json", home=tmp_path)
    assert (status, text) == (1, "")
    assert "There is no file" in errors
