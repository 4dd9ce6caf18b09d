"""``incident-console replay`` as a process, against a real target."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.dump_layouts import pickled, record
from tests.ports import free_port
from tests.replaying import ReplayTarget, replay_target
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
KEYS = {
    "requests", "sent", "completed", "errors", "verdict", "why", "recorded", "replayed",
    "fidelity", "stripped", "target",
}  # fmt: skip
LINE_KEYS = {
    "index", "rid", "status", "sent_at", "lateness_ms", "ttft_seconds", "e2e_seconds",
    "prompt_tokens", "completion_tokens", "finish_reason", "recorded",
}  # fmt: skip


def command(home: Path, *arguments: str | Path) -> dict[str, Any]:
    """What ``subprocess`` is to start."""
    return {
        "args": [sys.executable, "-m", "app", "replay", *map(str, arguments)],
        "cwd": home,
        "env": {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(home / "config")},
        "text": True,
    }


def replay(home: Path, *arguments: str | Path, words: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        **command(home, *arguments), input=words, capture_output=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


def lines(kinds: list[str], *, apart_seconds: float = 0.0, **fields: Any) -> str:
    """Requests as JSON lines; each prompt tells the target what to do."""
    told = [
        {
            "index": index,
            "rid": f"rid-{index}",
            "started_at": f"2026-01-14T09:00:{index * apart_seconds:09.6f}Z",
            "endpoint": "/generate",
            "payload": {"text": kind, "stream": True, **fields},
        }
        for index, kind in enumerate(kinds)
    ]
    return "".join(json.dumps(one) + "\n" for one in told)


@pytest.fixture(scope="module")
def target() -> Iterator[ReplayTarget]:
    with replay_target() as one:
        yield one


def test_a_dump_is_sent_and_told_as_one_document_and_a_line_a_request(
    tmp_path: Path, target: ReplayTarget
) -> None:
    dump, out = tmp_path / "requests.pkl", tmp_path / "out.jsonl"
    dump.write_bytes(pickled({"server_args": None, "requests": [record(n) for n in range(3)]}))
    status, text, errors = replay(
        tmp_path, dump, "--base-url", target.base_url, "--yes", "--json", "--out", out
    )
    document = json.loads(text)
    told = [json.loads(line) for line in out.read_text().splitlines()]

    assert status == 0
    assert document.keys() >= KEYS
    assert (document["requests"], document["sent"], document["completed"]) == (3, 3, 3)
    assert document["verdict"] == "not reproduced"
    assert document["target"]["version"] == "0.5.23"
    assert [one["index"] for one in told] == [0, 1, 2]
    assert told[0].keys() >= LINE_KEYS
    assert "error" not in told[0]
    assert out.stat().st_mode & 0o777 == 0o600
    assert "3 requests" in errors
    own = [one["body"] for one in target.seen()][-3:]
    assert len({one["rid"] for one in own}) == 3
    assert all(one["rid"].startswith("replay-") for one in own)


def test_without_json_it_is_one_screen(tmp_path: Path, target: ReplayTarget) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative", "broken"]))
    status, text, _ = replay(
        tmp_path, path, "--base-url", target.base_url, "--yes", "--symptom", "error"
    )
    assert status == 0
    assert text.splitlines()[0] == "error: reproduced (supported)"
    assert "server-error" in text
    assert "ratio of pairs" not in text, "nothing is known of when they were recorded"
    assert "no: broken" in text


def test_of_a_file_that_is_cut_off_it_is_said_that_requests_are_missing(
    tmp_path: Path, target: ReplayTarget
) -> None:
    whole = pickled({"server_args": None, "requests": [record(n) for n in range(3)]})
    dump = tmp_path / "requests.pkl"
    dump.write_bytes(whole[: len(whole) * 2 // 3])
    status, text, errors = replay(
        tmp_path, dump, "--base-url", target.base_url, "--yes", "--json", "--flat-out"
    )

    assert status == 0
    assert json.loads(text)["sent"] == 1
    [note] = [one for one in json.loads(text)["plan"]["notes"] if one["kind"] == "file"]
    assert note["says"].startswith("Truncated: ")
    assert note["says"] in errors


def test_a_shape_of_which_only_the_characters_are_known_is_replayed(tmp_path: Path) -> None:
    """As ``dump export --tier T0`` writes a request that had no answer yet."""
    payload = {"prompt_tokens": None, "prompt_characters": 512, "prefix": [], "features": ["lora"]}
    told = {"index": 4, "rid": "r", "endpoint": "/generate", "tier": "T0", "payload": payload,
            "recorded": {"state": "unfinished"}}  # fmt: skip
    path = tmp_path / "t0.jsonl"
    path.write_text(json.dumps(told) + "\n")
    with replay_target() as target:
        status, text, _ = replay(tmp_path, path, "--base-url", target.base_url, "--yes", "--json")
        [sent] = [one["body"] for one in target.seen() if one["path"] == "/generate"]

    assert (status, json.loads(text)["sent"]) == (0, 1)
    assert "lora_path: not kept, sent without" in json.loads(text)["stripped"]
    assert "Not tested: some went without their adapter" in json.loads(text)["why"]
    assert len(sent["input_ids"]) == 128


def test_nothing_is_sent_before_it_is_confirmed(tmp_path: Path, target: ReplayTarget) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative"]))
    before = len(target.seen())
    status, text, errors = replay(tmp_path, path, "--base-url", target.base_url)

    assert (status, text) == (1, "")
    assert "not marked as clean" in errors
    assert "--yes" in errors
    assert len(target.seen()) == before


@pytest.mark.parametrize(("typed", "sent"), [("right", 1), ("wrong", 0)], ids=["name", "other"])
def test_on_a_terminal_the_name_of_the_target_is_typed(
    tmp_path: Path, target: ReplayTarget, typed: str, sent: int
) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative"]))
    before = len(target.seen())
    ours, theirs = pty.openpty()
    word = f"127.0.0.1:{target.port}" if typed == "right" else "yes"
    with subprocess.Popen(
        **command(tmp_path, path, "--base-url", target.base_url),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(theirs)
        os.write(ours, f"{word}\n".encode())
        _, errors = process.communicate(timeout=60)
    os.close(ours)

    assert f"Type 127.0.0.1:{target.port} to send them" in errors
    assert len(target.seen()) - before == sent
    assert process.returncode == (0 if sent else 1)


def test_strangers_stop_it_before_the_first_request_even_with_yes(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative"]))
    with replay_target() as target:
        target.get("/__running/2")
        status, text, errors = replay(tmp_path, path, "--base-url", target.base_url, "--yes")
        assert (status, text) == (1, "")
        assert "serving 2 requests of others" in errors
        assert "Nothing was sent." in errors
        assert target.seen() == []


def test_a_target_that_dies_is_reproduced_with_who_was_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative 0.05"] * 12, apart_seconds=0.1))
    with replay_target(dies_after=6) as target:
        status, text, _ = replay(
            tmp_path, path, "--base-url", target.base_url, "--yes", "--json", "--trials", "3"
        )
    document = json.loads(text)
    assert status == 0
    assert document["verdict"] == "reproduced"
    assert document["died"]["last_sent"] == 5
    assert 5 in document["died"]["in_flight"]
    assert len(document["trials"]) == 1
    classes = {one["class"] for one in document["errors"]}
    assert classes >= {"connection-refused", "connection-reset"}


def test_trials_are_told_apart_in_the_lines(tmp_path: Path, target: ReplayTarget) -> None:
    path, out = tmp_path / "requests.jsonl", tmp_path / "out.jsonl"
    path.write_text(lines(["cumulative"] * 2))
    status, text, _ = replay(
        tmp_path, path, "--base-url", target.base_url, "--yes", "--json", "--trials", "2",
        "--out", out,
    )  # fmt: skip
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert status == 0
    assert len(json.loads(text)["trials"]) == 2
    assert sorted((one["trial"], one["index"]) for one in told) == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_what_is_selected_is_sent_and_what_acts_is_stripped(
    tmp_path: Path, target: ReplayTarget
) -> None:
    path = tmp_path / "requests.jsonl"
    code: dict[str, Any] = {"custom_logit_processor": "80049", "bootstrap_room": 5, "rid": "old"}
    path.write_text(lines(["cumulative"] * 5, **code))
    before = len(target.seen())
    status, text, errors = replay(
        tmp_path, path, "--base-url", target.base_url, "--yes", "--json", "--select", "1:3"
    )
    seen = [one["body"] for one in target.seen()][before:]

    assert status == 0
    assert len(seen) == 2
    assert not {"custom_logit_processor", "bootstrap_room"} & seen[0].keys()
    assert seen[0]["rid"] != "old"
    assert {"custom_logit_processor", "bootstrap_room"} <= set(json.loads(text)["stripped"])
    assert "custom_logit_processor" in errors


@contextmanager
def running(home: Path, target: ReplayTarget, out: Path) -> Iterator["subprocess.Popen[str]"]:
    """A replay that would take half a minute, once it has measured something."""
    path = home / "long.jsonl"
    path.write_text(lines(["cumulative", "cumulative", "hang"] * 10, apart_seconds=1.0))
    with subprocess.Popen(
        **command(home, path, "--base-url", target.base_url, "--yes", "--json", "--out", out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        until(lambda: out.exists() and out.stat().st_size > 0)
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_breaks_off_in_order_and_tells_what_was_measured(
    tmp_path: Path, target: ReplayTarget
) -> None:
    out = tmp_path / "out.jsonl"
    with running(tmp_path, target, out) as process:
        until(lambda: any(one["body"]["text"] == "hang" for one in target.seen()))
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=60)
    document = json.loads(text)
    told = [json.loads(line) for line in out.read_text().splitlines()]

    assert process.returncode == 1
    assert "Stopped by hand" in errors
    assert document["verdict"] == "inconclusive"
    assert document["requests"] == 30
    assert len(told) == 30
    assert {"cancelled", "not-sent"} <= {one.get("error") for one in told}


def test_kill_nine_leaves_what_was_measured_and_nothing_running(
    tmp_path: Path, target: ReplayTarget
) -> None:
    out = tmp_path / "out.jsonl"
    with running(tmp_path, target, out) as process:
        children = _children(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert children
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert told[0]["index"] == 0
    assert told[0]["completion_tokens"] == 4


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--base-url", "http://169.254.169.254"], 1, "never asked"),
        (["--base-url", "TARGET", "--select", "0:3,nonsense"], 2, "names no request"),
        (["--base-url", "TARGET", "--select", "9"], 1, "No request is left"),
        (["--base-url", "TARGET", "--closed-loop", "--flat-out"], 2, "exclude each other"),
        (["--base-url", "TARGET", "--speed", "0"], 2, "speed is 0"),
        (["--base-url", "TARGET", "--trials", "99"], 2, "trials is 99"),
        (["--base-url", "TARGET", "--sample", "nan"], 2, "A sample is a share"),
        (["--base-url", "TARGET", "--until-seconds", "0"], 2, "ends before it begins"),
        (["--base-url", "TARGET", "--out", "there.jsonl"], 1, "is there already"),
        (["--base-url", "TARGET", "--token-env", "NO_SUCH"], 1, "NO_SUCH is not set"),
    ],
    ids=[
        "metadata",
        "selection",
        "nothing",
        "modes",
        "speed",
        "trials",
        "sample",
        "window",
        "out",
        "token",
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_sent(
    tmp_path: Path, target: ReplayTarget, arguments: list[str], status: int, says: str
) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative"]))
    (tmp_path / "there.jsonl").write_text("")
    before = len(target.seen())
    told = [target.base_url if word == "TARGET" else word for word in arguments]
    done = replay(tmp_path, path, *told, "--yes")

    assert done[0] == status
    assert says in done[2].replace("\n", " ")
    assert "Traceback" not in done[2]
    assert len(target.seen()) == before


def test_a_target_that_is_not_there_and_a_file_that_is_none_are_said(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(["cumulative"]))
    status, _, errors = replay(
        tmp_path, path, "--base-url", f"http://127.0.0.1:{free_port()}", "--yes"
    )
    assert (status, "Nothing listens at" in errors) == (1, True)

    path.write_bytes(b"\x00\x01\x02")
    status, _, errors = replay(tmp_path, path, "--base-url", "http://127.0.0.1:1", "--yes")
    assert status == 1
    assert "Traceback" not in errors


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(one) for task in tasks for one in (task / "children").read_text().split()]
