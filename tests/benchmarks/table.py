"""What was measured, as rows of one table; see docs/benchmarks.md."""

import os
import platform
from collections.abc import Iterator

ROWS: list[str] = []


def row(figure: str, measured: str, limit: str, peer: str = "") -> None:
    """Put a line into the table that is printed at the end of the run."""
    ROWS.append(f"| {figure} | {measured} | {limit} | {peer} |")


def lines() -> Iterator[str]:
    """The table, and the machine that it holds for."""
    yield "| Figure | Measured | Limit | Beside a peer |"
    yield "| --- | --- | --- | --- |"
    yield from ROWS
    cores = len(os.sched_getaffinity(0))
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    yield ""
    yield f"{cores} cores, Python {platform.python_version()}, load average at the end {load}."
