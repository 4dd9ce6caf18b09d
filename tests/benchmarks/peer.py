"""The public incident_artifact_tool.py, for comparison: it is run where it lies, never kept here.

Its place is told by the variable INCIDENT_ARTIFACT_TOOL; without it nothing is compared.
"""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


def tool() -> Path:
    """Where the tool lies; skips the test where it does not."""
    told = os.environ.get("INCIDENT_ARTIFACT_TOOL", "")
    if not Path(told).is_file():
        pytest.skip("INCIDENT_ARTIFACT_TOOL does not name the public tool")
    return Path(told)


def metrics_parser() -> Callable[[str], object]:
    """Its reader of Prometheus text."""
    spec = importlib.util.spec_from_file_location("incident_artifact_tool", tool())
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parse: Callable[[str], object] = module.parse_metrics
    return parse


def collect_seconds(base_url: str, folder: Path, *, at_most_seconds: float) -> float | None:
    """How long its collect-bundle takes; None when it had not ended in time."""
    command = [sys.executable, str(tool()), "collect-bundle", "--base-url", base_url]
    start = time.monotonic()
    try:
        subprocess.run(
            [*command, "--outdir", str(folder), "--timeout", "5"],
            check=True,
            capture_output=True,
            timeout=at_most_seconds,
        )
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - start
