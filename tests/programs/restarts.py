"""Starts a program anew in the background, as a supervisor does: ``restarts.py PIDFILE WORD…``."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


if __name__ == "__main__":
    kept = Path(sys.argv[1])
    if kept.exists():
        pid = int(kept.read_text())
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        while not ended(pid):
            time.sleep(0.01)
    started = subprocess.Popen(sys.argv[2:], start_new_session=True)
    kept.write_text(str(started.pid))
