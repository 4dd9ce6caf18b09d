"""Who the agent is and what it works with."""

import platform
import re
import shutil
import socket
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from app.agent.kept.state import AgentState
from app.agent.touching.tools import find_tool, run_tool
from app.protocol.messages import Info

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TOOLS = ("nsenter", "openssl", "journalctl", "dmesg")
_VERSION_SECONDS = 3.0


@cache
def own_version() -> str:
    """The version of this program; "unknown" where it runs without being installed."""
    try:
        return version("incident-console")
    except PackageNotFoundError:
        return "unknown"


def info(state: AgentState, *, embedded: bool) -> Info:
    """The agent at this moment, by the clock of its host."""
    own = psutil.Process()
    spent = own.cpu_times()
    return Info(
        agent_id=state.agent_id,
        version=own_version(),
        host=socket.gethostname(),
        at=datetime.now(UTC),
        started_at=state.started_at,
        boot_id=_boot_id(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        embedded=embedded,
        rss_bytes=own.memory_info().rss,
        cpu_seconds=spent.user + spent.system,
        free_bytes=shutil.disk_usage(state.folder).free,
        tools={"py-spy": _py_spy(), **{name: _place(name) for name in _TOOLS}},
    )


@cache
def _py_spy() -> str | None:
    """Its version; None where it is absent or does not answer."""
    found = find_tool("py-spy")
    if found is None:
        return None
    run = run_tool([found, "--version"], deadline_seconds=_VERSION_SECONDS)
    told = re.search(rb"\d+(\.\d+)+", run.out)
    return told[0].decode() if told else None


def _place(name: str) -> str | None:
    return "present" if find_tool(name) else None


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return None
