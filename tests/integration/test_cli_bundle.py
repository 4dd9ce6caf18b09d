import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from app.cli import COMMANDS
from app.cli.summary_text import printable, summary_text
from tests.integration.scripted_target import ScriptedTarget, answers, hangs, scripted_target
from tests.integration.shared_tools import capture_server
from tests.waiting import until

pytestmark = pytest.mark.slow

JSON = {
    "/ready": answers(b""),
    "/model_info": answers(b'{"model_path":"/models/m"}'),
    "/metrics": answers(b"sglang:num_running_reqs 1\n"),
    "/server_info": answers(b'{"version":"0.5.23","frontend":"python","api_key":"sk-AAAA1111"}'),
    "/v1/loads": answers(b'{"loads":[]}'),
}
# Bytecode is cached as it is in production; otherwise each start compiles all it imports.
CACHED = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "incident-console-tests-bytecode"),
}
CHEAP = ["ready", "model_info", "metrics_1", "hicache"]
QUICK = ("--interval-seconds", "0.1", "--probe", "never")


def console(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """``incident-console`` run as a process of its own, with its configuration in *folder*."""
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **CACHED, "XDG_CONFIG_HOME": str(folder / "config"), **environment},
    )


def collect(
    target: ScriptedTarget, out: Path, *more: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    arguments = ("bundle", "collect", "--base-url", target.base_url, "--out", str(out), *QUICK)
    return console(*arguments, *more, folder=out.parent, **environment)


def test_collect_prints_the_folder_and_shows_captures_as_they_land(tmp_path: Path) -> None:
    with scripted_target(JSON) as target:
        done = collect(target, tmp_path / "b")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'b'}\n")
    assert "/server_info" in done.stderr
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["format_version"] == 1
    everything = b"".join(file.read_bytes() for file in (tmp_path / "b").iterdir())
    assert b"AAAA1111" not in everything
    key = tmp_path / "config" / "incident-console" / "fingerprint.key"
    assert key.stat().st_mode & 0o777 == 0o600


def test_collect_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    with scripted_target(JSON) as target:
        done = collect(target, tmp_path / "b", "--json")
    summary = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert summary["base_url"] == target.base_url
    assert summary["folder"] == str(tmp_path / "b")
    assert {one["path"] for one in summary["endpoints"]} >= {"/ready", "/metrics", "/health"}


def test_a_server_that_is_not_there_is_a_bundle_too(tmp_path: Path) -> None:
    with scripted_target({}) as target:
        pass
    done = collect(target, tmp_path / "b", "--json")
    assert done.returncode == 0
    outcomes = {one["outcome"] for one in json.loads(done.stdout)["endpoints"]}
    assert outcomes == {"refused", "not asked"}


def test_secrets_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "admin").write_text("admin-1\n")
    (tmp_path / "headers").write_text("# for the gateway\nX-Gate: open\n\n")
    with scripted_target(JSON) as target:
        done = collect(
            target,
            tmp_path / "b",
            *("--token-env", "USER_KEY", "--admin-token-file", str(tmp_path / "admin")),
            *("--header-file", str(tmp_path / "headers")),
            USER_KEY="user-1",
        )
    assert done.returncode == 0
    sent = dict(target.asked)
    assert sent["/server_info"]["authorization"] == "Bearer user-1"
    assert sent["/hicache/storage-backend"]["authorization"] == "Bearer admin-1"
    assert sent["/ready"]["x-gate"] == "open"
    assert "authorization" not in sent["/ready"]


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        pytest.param(("--token-env", "NO_SUCH"), 1, "NO_SUCH is not set", id="no-variable"),
        pytest.param(("--token-file", "/no/such"), 1, "cannot be read", id="no-file"),
        pytest.param(("--probe", "maybe"), 2, "maybe", id="usage"),
        pytest.param(("--push", "http://127.0.0.1:1"), 2, "--incident", id="push-alone"),
        pytest.param(("--base-url", "http://169.254.169.254"), 1, "never asked", id="metadata"),
        pytest.param(("--base-url", "ftp://host"), 1, "http", id="scheme"),
    ],
)
def test_what_cannot_be_done_says_why_and_asks_nothing(
    tmp_path: Path, arguments: tuple[str, ...], status: int, reason: str
) -> None:
    with scripted_target(JSON) as target:
        done = collect(target, tmp_path / "b", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert target.asked == []


def test_a_folder_in_use_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with scripted_target(JSON) as target:
        done = collect(target, tmp_path)
    assert done.returncode == 1
    assert "not empty" in done.stderr
    assert target.asked == []


def test_what_landed_before_ctrl_c_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "b"
    with scripted_target({**JSON, "/server_info": hangs}) as target:
        command = [sys.executable, "-m", "app", "bundle", "collect", "--base-url", target.base_url]
        environment = {**os.environ, **CACHED, "XDG_CONFIG_HOME": str(tmp_path / "config")}
        process = subprocess.Popen(
            [*command, "--out", str(out)], stderr=subprocess.PIPE, text=True, env=environment
        )
        until(lambda: "/server_info" in target.paths())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Stopped by hand" in errors
    manifest = json.loads((out / "manifest.json").read_text())
    assert [one["name"] for one in manifest["captures"]] == CHEAP


def test_push_attaches_the_archive_to_the_incident(tmp_path: Path) -> None:
    taken = answers(b'{"id":1}', status="201 Created")
    with scripted_target(JSON) as target, scripted_target({}, otherwise=taken) as there:
        push = ("--push", there.base_url, "--incident", "7")
        done = collect(target, tmp_path / "b", *push, INCIDENT_CONSOLE_TOKEN="t-1")
    assert done.returncode == 0
    [(path, headers)] = there.asked
    assert path == "/api/v1/incidents/7/artifacts"
    assert headers["authorization"] == "Bearer t-1"
    assert headers["content-type"].startswith("multipart/form-data")


def test_a_console_that_refuses_leaves_the_bundle_on_disk(tmp_path: Path) -> None:
    refusal = answers(b'{"error":"forbidden","detail":"A reader."}', status="403 Forbidden")
    with scripted_target(JSON) as target, scripted_target({}, otherwise=refusal) as there:
        push = ("--push", there.base_url, "--incident", "7")
        done = collect(target, tmp_path / "b", *push, INCIDENT_CONSOLE_TOKEN="t-1")
    assert done.returncode == 1
    assert "403: A reader." in done.stderr
    assert (tmp_path / "b" / "manifest.json").exists()


def test_two_bundles_are_summarised_and_compared(tmp_path: Path) -> None:
    with capture_server("idle_fresh") as base_url:
        target = ScriptedTarget(port=int(base_url.rpartition(":")[2]))
        for name in ("a", "b"):
            assert collect(target, tmp_path / name).returncode == 0
    told = console("bundle", "summarize", str(tmp_path / "a"), "--json", folder=tmp_path)
    summary = json.loads(told.stdout)
    assert (summary["version"], summary["frontend"]) == ("0.5.23", "python")
    shown = console("bundle", "summarize", str(tmp_path / "a"), folder=tmp_path)
    assert "tiny-random" in shown.stdout
    apart = console("bundle", "diff", str(tmp_path / "a"), str(tmp_path / "b"), folder=tmp_path)
    assert apart.returncode == 0
    assert "Nothing changed" in apart.stdout


def test_a_bundle_of_the_public_tool_is_summarised(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "data" / "bundle-of-the-public-tool"
    told = console("bundle", "summarize", str(folder), "--json", folder=tmp_path)
    summary = json.loads(told.stdout)
    assert summary["load"]["totals"] == {"running": None, "waiting": None}
    shown = console("bundle", "summarize", str(folder), folder=tmp_path)
    assert "? running, ? waiting" in shown.stdout


def test_what_is_no_bundle_fails_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"nothing")
    done = console("bundle", "summarize", str(tmp_path / "x.zip"), "--json", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Not an archive")


def test_help_names_every_group_and_imports_none_of_them(tmp_path: Path) -> None:
    done = console("--help", folder=tmp_path)
    assert done.returncode == 0
    assert all(f"  {name}" in done.stdout for name in COMMANDS)
    assert console("bundle", "--help", folder=tmp_path).returncode == 0
    assert console("nope", folder=tmp_path).returncode == 2


HEAVY = ("fastapi", "dbos", "sqlmodel", "sqlalchemy", "pydantic", "app.web", "app.store")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("app.cli", (*HEAVY, "httpx", "httpcore", "app.domain")),
        ("app.cli.bundle", (*HEAVY, "httpx", "httpcore", "app.domain")),
        ("app.cli.bundle_summarize", (*HEAVY, "httpx", "httpcore", "asyncio")),
        ("app.cli.bundle_diff", (*HEAVY, "httpx", "httpcore", "asyncio")),
        ("app.cli.bundle_collect", HEAVY),
    ],
)
def test_a_command_imports_only_what_it_needs(module: str, absent: tuple[str, ...]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not set(absent) & set(told.stdout.split())


def test_what_a_server_says_cannot_steer_a_terminal() -> None:
    assert printable("a\x1b[31mb\nc\u202e") == "a\\x1b[31mb\\nc\\u202e"
    shown = summary_text(
        {
            "model": {"model_path": "\x1b]0;owned\x07"},
            "signals": [{"id": "x", "says": "\x1b[2J", "status": "unknown"}],
            "load": {"per_rank": [{"dp_rank": "\x1b", "token_usage": "?"}]},
            "endpoints": [{"path": "/x", "detail": "\r\x00"}],
        }
    )
    assert not [one for one in shown if not one.isprintable() and one != "\n"]


def test_a_summary_of_nothing_shows_the_unknown_as_unknown() -> None:
    shown = summary_text({})
    assert "? running, ? waiting" in shown
    assert "No rank told its load." in shown
