"""Servers that only look like one: see tests/programs/serving."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SERVING = ROOT / "tests" / "programs" / "serving"
SGLANG = ("-m", "sglang.launch_server")


@contextmanager
def played(
    node: dict[str, Any],
    *arguments: str,
    command: Sequence[str] = SGLANG,
    folder: Path | None = None,
    says: int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Its root process, in *folder*, which writes to the descriptor *says*.

    At the end all of its processes are killed, orphans as well.
    """
    found = f"{SERVING}:{ROOT}"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": found, "PLAY": json.dumps(node)}
    root = subprocess.Popen(
        [sys.executable, *command, *arguments],
        env=environment,
        cwd=folder,
        stdout=says,
        start_new_session=True,
    )
    try:
        yield root
    finally:
        with suppress(ProcessLookupError):
            os.killpg(root.pid, signal.SIGKILL)
        root.wait(10)
