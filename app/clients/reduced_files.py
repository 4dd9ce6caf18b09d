"""The files that a reduction leaves: the requests, how to send them by hand, and its steps."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.domain.replay.curl_script import SCRIPT_FILE, body_files, script
from app.domain.replay.planned import Sending
from app.domain.replay.reproducer import fixture
from app.errors import Conflict, Rejected


@dataclass(frozen=True, slots=True)
class ReducedFiles:
    """Where they are: *out* itself, and beside it."""

    out: Path

    @property
    def steps(self) -> Path:
        return self.out.with_suffix(".steps.jsonl")

    @property
    def curl_folder(self) -> Path:
        return self.out.with_suffix(".curl")

    def check_ours(self) -> None:
        """Raises Conflict where *out* is there and no steps say that a reduction made it."""
        if self.out.exists() and not self.steps.exists():
            raise Conflict(f"{self.out} is there already.", fix="Name another one with --out.")

    def write(
        self, sendings: Sequence[Sending], base_url: str, *, with_token: bool, together: bool
    ) -> Mapping[str, str]:
        """Write the requests and the commands; returns the files by what they hold.

        They hold what people asked the server, so they are readable by their owner alone.
        """
        text = script(sendings, base_url, with_token=with_token, together=together)
        try:
            _put(self.out, fixture(sendings))
            self.curl_folder.mkdir(mode=0o700, exist_ok=True)
            for name, body in body_files(sendings).items():
                _put(self.curl_folder / name, body)
            _put(self.curl_folder / SCRIPT_FILE, text.encode(), mode=0o700)
        except OSError as error:
            raise Rejected(f"{error.filename} cannot be written: {error.strerror}.") from error
        return {
            "requests": str(self.out),
            "curl": str(self.curl_folder / SCRIPT_FILE),
            "steps": str(self.steps),
        }


def _put(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """The whole file or none of it, also when this process is killed."""
    beside = path.with_name(f".{path.name}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    beside.replace(path)
