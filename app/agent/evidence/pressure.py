"""Load, memory and pressure of the host.

Pressure is the share of time in which some or all tasks waited: the kernel's PSI, see
Documentation/accounting/psi.rst of Linux.
"""

import os
import re
from pathlib import Path

from app.agent.evidence.sizes import seconds_text, size_text
from app.agent.touching.small_files import named_numbers, read_small
from app.protocol.messages import Fact

_AVERAGES = re.compile(r"^(some|full) avg10=(\d{1,3}\.\d\d) avg60=(\d{1,3}\.\d\d)", re.MULTILINE)
_LOW_MEMORY = 0.10  # of the whole: reclaim begins to be felt
_VERY_LOW_MEMORY = 0.03
_PRESSED = {"cpu": ("some", 50.0), "memory": ("full", 5.0), "io": ("full", 20.0)}


def load_fact(proc: Path) -> Fact:
    """How many tasks run or wait, against the CPUs there are."""
    source = str(proc / "loadavg")
    words = (read_small(proc / "loadavg") or "").split()
    if len(words) < 3:
        return unread("load", "The load of the host", source)
    cpus = os.cpu_count() or 1
    one_minute = float(words[0])
    return Fact(
        topic="load",
        says=f"Load {words[0]}, {words[1]} and {words[2]} over 1, 5 and 15 min, on {cpus} CPUs.",
        level="warn" if one_minute > 2 * cpus else "quiet",
        source=source,
    )


def memory_facts(proc: Path) -> list[Fact]:
    """How much memory is left, and whether swap is used."""
    source = str(proc / "meminfo")
    kib = named_numbers(read_small(proc / "meminfo") or "")
    total, available = kib.get("MemTotal"), kib.get("MemAvailable")
    if not total or available is None:
        return [unread("memory", "The memory of the host", source)]
    share = available / total
    level = "bad" if share < _VERY_LOW_MEMORY else "warn" if share < _LOW_MEMORY else "good"
    left, whole = size_text(available * 1024), size_text(total * 1024)
    says = f"{left} of {whole} memory is available ({share:.0%})."
    facts = [Fact(topic="memory", says=says, level=level, source=source)]
    swapped = kib.get("SwapTotal", 0) - kib.get("SwapFree", 0)
    if swapped > 0:
        says = f"{size_text(swapped * 1024)} of memory is swapped out."
        facts.append(Fact(topic="memory", says=says, level="warn", source=source))
    return facts


def pressure_facts(proc: Path) -> list[Fact]:
    """The share of time that tasks waited for CPU, memory and disk."""
    return [_pressure(proc / "pressure" / what, what) for what in _PRESSED]


def boot_fact(proc: Path) -> Fact:
    """Since when the host runs."""
    seconds = uptime_seconds(proc)
    if seconds is None:
        return unread("boot", "When the host started", str(proc / "uptime"))
    says = f"The host runs since {seconds_text(seconds)}."
    level = "warn" if seconds < 600 else "quiet"
    return Fact(topic="boot", says=says, level=level, source=str(proc / "uptime"))


def uptime_seconds(proc: Path) -> float | None:
    """Since boot; None where it cannot be read."""
    words = (read_small(proc / "uptime") or "").split()
    try:
        return float(words[0])
    except (IndexError, ValueError):
        return None


def unread(topic: str, what: str, source: str) -> Fact:
    """That *what* is not known, which is not good and not bad."""
    return Fact(topic=topic, says=f"{what} cannot be read.", level="unknown", source=source)


def _pressure(path: Path, what: str) -> Fact:
    text = read_small(path)
    averages = {name: (ten, sixty) for name, ten, sixty in _AVERAGES.findall(text or "")}
    kind, limit = _PRESSED[what]
    if kind not in averages:
        return unread("pressure", f"The pressure on {what}", str(path))
    ten, sixty = averages[kind]
    who = "some task" if kind == "some" else "every task"
    says = f"In {ten} % of the last 10 s and {sixty} % of the last 60 s {who} waited for {what}."
    level = "warn" if float(ten) > limit or float(sixty) > limit else "good"
    return Fact(topic="pressure", says=says, level=level, source=str(path))
