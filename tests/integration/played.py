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

SERVING = Path(__file__).parents[1] / "programs" / "serving"
SGLANG = ("-m", "sglang.launch_server")


@contextmanager
def played(
    node: dict[str, Any], *arguments: str, command: Sequence[str] = SGLANG
) -> Iterator[subprocess.Popen[bytes]]:
    """Its root process; at the end all of its processes are killed, orphans as well."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SERVING), "PLAY": json.dumps(node)}
    root = subprocess.Popen(
        [sys.executable, *command, *arguments], env=environment, start_new_session=True
    )
    try:
        yield root
    finally:
        with suppress(ProcessLookupError):
            os.killpg(root.pid, signal.SIGKILL)
        root.wait(10)
