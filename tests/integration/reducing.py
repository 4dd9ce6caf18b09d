"""A disposable target for reductions, and ``incident-console reduce`` on it as a user runs it."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.ports import free_port

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests/programs"
TOTAL = 500
CHECK = shlex.join([sys.executable, str(PROGRAMS / "asks_health.py")])


@dataclass(frozen=True)
class Scene:
    """A target by its rules, the requests for it, and where its reduction writes."""

    folder: Path
    rules: dict[str, Any]
    port: int = field(default_factory=free_port)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def out(self) -> Path:
        return self.folder / "smallest.jsonl"

    @property
    def launch(self) -> list[str]:
        """The command that is the target."""
        kept = {name: str(self.folder / name) for name in ("starts", "seen", "spared")}
        told = {**self.rules, **kept}
        program = str(PROGRAMS / "fragile_target.py")
        return [sys.executable, program, str(self.port), orjson.dumps(told).decode()]

    @property
    def supervised(self) -> list[str]:
        """The command that starts it in the background."""
        return [sys.executable, str(PROGRAMS / "restarts.py"), str(self._pid_file), *self.launch]

    @property
    def _pid_file(self) -> Path:
        return self.folder / "pid"

    def command(self, *flags: str, restart: list[str] | None = None) -> list[str]:
        words = [sys.executable, "-m", "app", "reduce", str(requests(self.folder))]
        words += ["--base-url", self.base_url, "--check", CHECK, "--out", str(self.out)]
        words += ["--restart", shlex.join(restart or self.launch), "--settle-seconds", "0.05"]
        return [*words, "--yes", "--json", *flags]

    def reduce(
        self, *flags: str, restart: list[str] | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        command = self.command(*flags, restart=restart)
        return subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, timeout=300, check=False
        )

    def starts(self) -> int:
        return len(self._lines("starts"))

    def seen(self) -> list[str]:
        return self._lines("seen")

    def steps(self, kind: str) -> list[dict[str, Any]]:
        lines = self._lines("smallest.steps.jsonl")
        return [told for line in lines if (told := orjson.loads(line))["step"] == kind]

    def smallest(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self._lines("smallest.jsonl")]

    def end(self) -> None:
        """Whatever was started in the background."""
        if self._pid_file.exists():
            with suppress(ProcessLookupError):
                os.kill(int(self._pid_file.read_text()), signal.SIGKILL)

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def requests(folder: Path, total: int = TOTAL, words: int = 1) -> Path:
    """A file of *total* requests; the prompt of each begins with its number, as ``#17#``."""
    file = folder / "requests.jsonl"
    if not file.exists():
        lines = (
            {
                "text": f"#{n}# {'word ' * words}",
                "sampling_params": {"max_new_tokens": 64},
            }
            for n in range(total)
        )
        file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return file


@contextmanager
def scene(folder: Path, *culprits: int, **rules: Any) -> Iterator[Scene]:
    made = Scene(folder, {"culprits": [f"#{one}#" for one in culprits], **rules})
    try:
        yield made
    finally:
        made.end()
