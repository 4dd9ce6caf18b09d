"""``incident-console stacks compare``, as a person calls it on what somebody sent."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from app.agent.touching.tools import find_tool
from tests import stacks
from tests.integration.command_line import ROOT, Answer
from tests.integration.stuck import stuck

CASE = next(stacks.CASES.glob("01-*"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def call(*arguments: str, folder: Path = ROOT) -> Answer:
    done = subprocess.run(
        [sys.executable, "-m", "app", "stacks", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def test_a_folder_is_told_as_a_table_a_person_can_read() -> None:
    done = call("compare", str(CASE))

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("rank divergence · stuck or slow: unknown · 8 of 8 ranks read")
    assert "apart: TP3" in done.stdout
    assert "TP0-2, TP4-7  7     all_reduce" in done.stdout
    assert "they part in get_new_batch_prefill" in done.stdout
    assert done.stderr == ""


def test_json_is_one_document_with_what_the_interface_promises() -> None:
    done = call("compare", str(CASE), "--json")

    told = orjson.loads(done.stdout)
    assert {
        "ranks",
        "captured",
        "missing",
        "groups",
        "outliers",
        "majority_count",
        "divergence",
        "verdict",
        "stuck",
        "says",
    } <= told.keys()
    assert told["outliers"] == ["TP3"]
    assert told["divergence"]["frame"] == "get_new_batch_prefill"
    keys = ("ranks", "top", "where", "primitive", "moved", "frames")
    assert all(key in group for group in told["groups"] for key in keys)


def test_single_files_may_be_named() -> None:
    files = sorted(str(path) for path in CASE.rglob("*.txt"))
    told = orjson.loads(call("compare", *files, "--json").stdout)
    assert (told["verdict"], told["captured"]) == ("rank divergence", 8)


@pytest.mark.parametrize("body", [None, b"# Notes\n"], ids=["not-there", "no-stacks"])
def test_what_holds_no_stacks_is_exit_status_1_with_the_reason(
    tmp_path: Path, body: bytes | None
) -> None:
    path = tmp_path / "notes.md"
    if body is not None:
        path.write_bytes(body)
    done = call("compare", str(path), "--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert "No stacks in 1 file." in done.stderr or "There is no" in done.stderr


def test_links_and_pipes_are_passed_over_and_named(tmp_path: Path) -> None:
    (tmp_path / "tp0.txt").write_text(stacks.dump_text("sglang::scheduler", 700, stacks.POLLS))
    (tmp_path / "tp1.txt").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "tp2.txt")
    done = call("compare", str(tmp_path), "--json")

    assert orjson.loads(done.stdout)["verdict"] == "idle"
    assert "tp1.txt" in done.stderr
    assert "tp2.txt" in done.stderr


def test_a_hostile_name_does_not_command_the_terminal(tmp_path: Path) -> None:
    calls = ("\x1b[2Jevil (x.py:1)", *stacks.EVICTS)
    (tmp_path / "tp0.txt").write_text(stacks.dump_text("sglang::scheduler_TP0", 700, calls))
    assert "\x1b" not in call("compare", str(tmp_path)).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="py-spy on processes: Linux only")
@pytest.mark.skipif(find_tool("py-spy") is None, reason="py-spy is not installed")
def test_what_take_writes_compare_reads(tmp_path: Path) -> None:
    with stuck("lock") as one, stuck("lock") as two:
        pids = ("--pid", str(one), "--pid", str(two))
        often = ("--samples", "2", "--interval-seconds", "0.5")
        taken = call("take", *pids, *often, "--out", "taken", folder=tmp_path)
        assert taken.returncode == 0, taken.stderr
        done = call("compare", "taken", "--json", folder=tmp_path)

    told = orjson.loads(done.stdout)
    assert (told["captured"], told["samples"], told["missing"]) == (2, 2, [])
    assert told["groups"][0]["moved"] is False
    assert told["stuck"] is None  # half a second apart
