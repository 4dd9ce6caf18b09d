"""A target for replays that a test can talk to, and sendings for it."""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from app.domain.replay.planned import Recorded, Sending
from tests.ports import free_port
from tests.waiting import until

NOT_RECORDED = Recorded()
PROGRAM = Path(__file__).parent / "programs/replay_target.py"


@dataclass(frozen=True)
class ReplayTarget:
    """Where it listens; what it is told and asked by a test goes past all code of ours."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def seen(self) -> list[dict[str, Any]]:
        """The requests that came, in order, with their headers and bodies."""
        told: list[dict[str, Any]] = self.get("/__seen")
        return told

    def seen_at_last(self) -> int:
        """How many came once no more do: it may have some yet to read. 0 as long as they come."""
        seen = len(self.seen())
        time.sleep(0.5)
        return seen if len(self.seen()) == seen else 0

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.base_url}{path}", timeout=10) as answer:
            return orjson.loads(answer.read())

    def listens(self) -> bool:
        try:
            self.get("/health")
        except OSError:
            return False
        return True


@contextmanager
def replay_target(*, dies_after: int = 0) -> Iterator[ReplayTarget]:
    """``tests/programs/replay_target.py``, ready."""
    port = free_port()
    command = [sys.executable, str(PROGRAM), str(port), str(dies_after)]
    with subprocess.Popen(command) as process:
        target = ReplayTarget(port, process)
        try:
            until(target.listens)
            yield target
        finally:
            process.kill()


def sending(
    index: int = 0,
    kind: str = "cumulative",
    *,
    due: float = 0.0,
    stream: bool = True,
    path: str = "/generate",
    recorded: Recorded = NOT_RECORDED,
    **more: Any,
) -> Sending:
    """A request whose prompt, *kind*, tells the target how to answer."""
    body = orjson.dumps({"text": kind, "stream": stream, **more})
    return Sending(index, f"rid-{index}", due, path, body, stream, (), recorded)


def busy_for(seconds: float) -> None:
    """Holds this thread up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
