"""``bisect init`` and the script that it writes, in a real repository with real servers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import psutil
import pytest

from tests.integration.bisecting import (
    BROKEN_SINCE,
    ENVIRONMENT,
    LAUNCH,
    UNSTARTABLE,
    Repository,
    done,
    repository,
)
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def repo(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    return repository(tmp_path / "server", getattr(request, "param", "crash"))


def servers_of(repo: Repository) -> list[psutil.Process]:
    """Processes that a launch left in the checkout."""
    return [
        one
        for one in psutil.process_iter(["cmdline", "cwd"])
        if "server.py" in (one.info["cmdline"] or ()) and one.info["cwd"] == str(repo.folder)
    ]


def results(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "logs/results.jsonl").read_bytes().splitlines()
    return [orjson.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("repo", "flags"),
    [
        pytest.param("crash", [], id="crash"),
        pytest.param("dying", ["--answer-seconds", "0.5"], id="a crash that takes its time"),
        pytest.param("hang", ["--symptom", "hang", "--answer-seconds", "3"], id="hang"),
        pytest.param("error", ["--symptom", "error"], id="error"),
        pytest.param("output", ["--symptom", "output", "--right-output", "^right$"], id="output"),
        pytest.param(
            "latency",
            ["--symptom", "latency", "--latency-seconds", "3", "--select", "1"],
            id="latency",
        ),
        pytest.param("crash", ["--check", 'test "$PORT" && curl -sf $BASE_URL'], id="check"),
    ],
    indirect=["repo"],
)
def test_each_symptom_tells_a_bad_commit_from_a_good_one(
    repo: Repository, tmp_path: Path, flags: list[str]
) -> None:
    out = tmp_path / "bisect"
    repo.init(out, *flags)

    statuses = []
    for number in (BROKEN_SINCE - 1, BROKEN_SINCE):
        repo.git("checkout", "--quiet", "--detach", repo.commits[number])
        statuses.append(done(str(out / "run"), cwd=repo.folder).returncode)

    assert statuses == [0, 1], results(out)
    assert servers_of(repo) == []


def test_git_bisect_run_names_the_commit_that_brought_the_fault_in(
    repo: Repository, tmp_path: Path
) -> None:
    out = tmp_path / "bisect"
    written = repo.init(out)
    assert (written.returncode, written.stdout.strip()) == (0, str(out)), written.stderr
    repo.git("bisect", "start", repo.commits[-1], repo.commits[0])

    ran = done("git", "bisect", "run", str(out / "run"), cwd=repo.folder)

    assert repo.git("rev-parse", "refs/bisect/bad") == repo.commits[BROKEN_SINCE], ran.stdout
    assert servers_of(repo) == []


def test_a_commit_that_cannot_start_is_skipped_and_what_it_printed_is_kept(
    repo: Repository, tmp_path: Path
) -> None:
    out = tmp_path / "bisect"
    repo.init(out)
    repo.git("checkout", "--quiet", "--detach", repo.commits[UNSTARTABLE[0]])

    step = done(str(out / "run"), cwd=repo.folder)

    assert step.returncode == 125
    [result] = results(out)
    assert (result["status"], result["why"]) == (125, "the server ended")
    assert "this one cannot start" in (out / "logs" / str(result["log"])).read_text()


def test_both_ends_are_verified_before_a_bisection_and_the_checkout_is_as_before(
    repo: Repository, tmp_path: Path
) -> None:
    out = tmp_path / "bisect"
    repo.init(out)

    ran = done(str(out / "run"), "bisect")

    assert ran.returncode == 0, ran.stderr
    assert f"Commit {BROKEN_SINCE}" in ran.stderr
    assert [one["revision"] for one in results(out)[:2]] == [repo.commits[-1], repo.commits[0]]
    assert repo.git("symbolic-ref", "--short", "HEAD") == "main"
    assert repo.git("bisect", "log") == ""
    assert "first bad commit" in (out / "bisect.log").read_text()


def test_where_a_commit_beside_the_first_bad_one_cannot_be_tested_both_are_named(
    repo: Repository, tmp_path: Path
) -> None:
    out = tmp_path / "bisect"
    repo.init(out, "--setup", "! grep -q 'commit 6' server.py")

    ran = done(str(out / "run"), "bisect")

    assert ran.returncode != 0
    assert "One of these brought it in" in ran.stderr
    named = [n for n, one in enumerate(repo.commits) if one in ran.stderr.split("One of these")[1]]
    assert named == [BROKEN_SINCE - 2, BROKEN_SINCE - 1, BROKEN_SINCE]
    assert repo.git("symbolic-ref", "--short", "HEAD") == "main"


def test_ends_that_do_not_differ_are_found_out_before_anything_is_bisected(
    repo: Repository, tmp_path: Path
) -> None:
    out = tmp_path / "bisect"
    repo.init(out, "--bad", repo.commits[BROKEN_SINCE - 1])

    ran = done(str(out / "run"), "bisect")

    assert ran.returncode == 1
    assert "ended with 0, not 1" in ran.stderr
    assert not (out / "bisect.log").exists()


def test_changes_that_are_not_committed_are_not_touched(repo: Repository, tmp_path: Path) -> None:
    out = tmp_path / "bisect"
    repo.init(out)
    (repo.folder / "server.py").write_text("my work\n")

    ran = done(str(out / "run"), "verify")

    assert ran.returncode == 1
    assert "not committed" in ran.stderr
    assert (repo.folder / "server.py").read_text() == "my work\n"


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("repo", ["hang"], indirect=True)
def test_no_server_is_left_behind_when_a_step_is_stopped(
    repo: Repository, tmp_path: Path, sign: signal.Signals
) -> None:
    out = tmp_path / "bisect"
    repo.init(out, "--symptom", "hang")
    with subprocess.Popen([out / "run"], cwd=repo.folder, env=ENVIRONMENT) as step:
        until(lambda: servers_of(repo))

        step.send_signal(sign)

        assert step.wait(60) > 127  # git stops the bisection too
    assert servers_of(repo) == []


def test_processes_that_the_server_started_end_with_it(repo: Repository, tmp_path: Path) -> None:
    out = tmp_path / "bisect"
    long = str(100_000 + os.getpid())  # of this run of tests alone
    repo.init(out, "--launch", f"sleep {long} & {LAUNCH}")

    assert done(str(out / "run"), cwd=repo.folder).returncode == 1

    left = [one for one in psutil.process_iter(["cmdline"]) if long in (one.info["cmdline"] or ())]
    assert left == []


def test_a_port_that_somebody_else_has_makes_a_commit_untestable(
    repo: Repository, tmp_path: Path
) -> None:
    out, other = tmp_path / "bisect", repository(tmp_path / "other", "none")
    port = str(free_port())
    repo.init(out, "--port", port)
    command = [sys.executable, "server.py", port]
    with subprocess.Popen(command, cwd=other.folder) as occupant:
        try:
            until(lambda: done(str(out / "run"), cwd=repo.folder).returncode == 125)
            assert "another server answers" in str(results(out)[-1]["why"])
        finally:
            occupant.kill()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        pytest.param(["--good", "nowhere"], "There is no commit 'nowhere'", id="no such commit"),
        pytest.param(["--launch", "./serve.sh"], "{port}", id="no port"),
        pytest.param(["--symptom", "latency"], "--latency-seconds", id="no limit"),
        pytest.param(["--good", "main"], "are the same", id="same commit"),
        pytest.param(["--good", "main", "--bad", "main~3"], "comes after", id="other way round"),
        pytest.param(["--checkout", "/"], "no git checkout", id="no checkout"),
    ],
)
def test_what_cannot_be_bisected_is_said_at_once(
    repo: Repository, tmp_path: Path, flags: list[str], says: str
) -> None:
    out = tmp_path / "bisect"

    told = repo.init(out, *flags)

    assert told.returncode == 1
    assert says in told.stderr
    assert not out.exists()
