"""A git repository with a planted regression, and what a person types to find it."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import orjson

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "tests/programs/tiny_server.py").read_text()
COMMITS = 12
BROKEN_SINCE = 7  # the first with the fault
UNSTARTABLE = (5, 8)  # commits that cannot start
LAUNCH = f"{shlex.quote(sys.executable)} server.py {{port}}"
_IDENTITY = {
    f"GIT_{who}_{what}": "test@example.org" if what == "EMAIL" else "Test"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
ENVIRONMENT = {
    **os.environ, **_IDENTITY,
    "PYTHONPATH": str(ROOT), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Repository:
    """``commits[n]`` is the full name of commit *n*, counted from 0."""

    folder: Path
    commits: tuple[str, ...]

    @property
    def requests(self) -> Path:
        return self.folder.parent / "requests.jsonl"

    def git(self, *words: str) -> str:
        return done("git", "-C", str(self.folder), *words).stdout.strip()

    def init(self, out: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
        """``bisect init`` between the first and the last commit, unless *flags* say otherwise."""
        ends = ("--good", self.commits[0], "--bad", self.commits[-1])
        words = (*ends, "--launch", LAUNCH, "--settle-seconds", "0.3", "--out", str(out), *flags)
        command = [sys.executable, "-m", "app", "bisect", "init", str(self.requests)]
        return done(*command, *words, cwd=self.folder)


def repository(folder: Path, fault: str) -> Repository:
    """Twelve commits of a tiny server, of which the seventh brings *fault* in."""
    folder.mkdir()
    repo = Repository(folder, ())
    repo.git("init", "--quiet", "--initial-branch", "main")
    commits = [_commit(repo, number, fault) for number in range(COMMITS)]
    payloads = [{"text": word, "stream": False} for word in ("one", "two BAD-WORD", "three")]
    repo.requests.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in payloads))
    return Repository(folder, tuple(commits))


def _commit(repo: Repository, number: int, fault: str) -> str:
    source = SOURCE.replace('"none"', repr(fault)) if number >= BROKEN_SINCE else SOURCE
    if number in UNSTARTABLE:
        source = "raise SystemExit('this one cannot start')\n"
    (repo.folder / "server.py").write_text(f"{source}\n# commit {number}\n")
    repo.git("add", "server.py")
    repo.git("commit", "--quiet", "--message", f"Commit {number}")
    return repo.git("rev-parse", "HEAD")


def done(*command: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """*command*, ended."""
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )
