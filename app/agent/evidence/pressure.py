"""The pressure on a host.

Pressure is the share of time in which some or all tasks waited: the kernel's PSI, see
Documentation/accounting/psi.rst of Linux.
"""

import re
from pathlib import Path

from app.agent.touching.small_files import read_small
from app.protocol.messages import Fact

_AVERAGES = re.compile(r"^(some|full) avg10=(\d{1,3}\.\d\d) avg60=(\d{1,3}\.\d\d)", re.MULTILINE)
_PRESSED = {"cpu": ("some", 50.0), "memory": ("full", 5.0), "io": ("full", 20.0)}


def pressure_facts(proc: Path) -> list[Fact]:
    """The share of time that tasks waited for CPU, memory and disk."""
    return [_pressure(proc / "pressure" / what, what) for what in _PRESSED]


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
