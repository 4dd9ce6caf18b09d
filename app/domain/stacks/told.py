"""A comparison as the document of ``stacks compare --json``."""

from collections.abc import Sequence
from typing import Any

from app.domain.stacks.compare import Comparison, Divergence, Group
from app.domain.stacks.counts import Counted
from app.domain.stacks.dump import Frame
from app.domain.stacks.samples import FailedRead, Missing, ProcessRead, Reading

MOST_FRAMES = 60  # of one group; a deeper stack recurses


def told(comparison: Comparison, reading: Reading | None = None) -> dict[str, Any]:
    """*comparison*, and with *reading* also the processes that were met; null is unknown."""
    document: dict[str, Any] = {
        "verdict": comparison.verdict,
        "stuck": comparison.stuck,
        "says": comparison.says,
        "settles": list(comparison.settles),
        "ranks": comparison.ranks,
        "captured": comparison.captured,
        "samples": comparison.samples,
        "missing": [_missing(one) for one in comparison.missing],
        "partial": [one.rank for one in comparison.missing if one.partial],
        "outliers": list(comparison.outliers),
        "majority_count": comparison.majority_count,
        "ground": comparison.ground,
        "peers": comparison.peers,
        "counted": _counted(comparison.counted),
        "divergence": _divergence(comparison.divergence),
        "groups": [_group(one) for one in comparison.groups],
        "moved": dict(comparison.moved),
    }
    if reading is not None:
        document |= {
            "expected": reading.expected,
            "states": dict(reading.states),
            "processes": [_process(one) for one in reading.processes],
            "pyspy_errors": [_failure(one) for one in reading.failures],
            "unrecognised": list(reading.unrecognised),
        }
    return document


def _counted(counted: Counted | None) -> dict[str, Any] | None:
    if counted is None:
        return None
    return {
        "communicator": counted.communicator,
        "counts": dict(counted.of),
        "grew": counted.grew,
        "seconds": counted.seconds,
        "sources": list(counted.sources),
    }


def _group(group: Group) -> dict[str, Any]:
    place = group.place
    return {
        "ranks": list(group.ranks),
        "top": place.top.function if place.top else None,
        "where": place.top.where if place.top else None,
        "primitive": place.wait.kind,
        "operation": place.wait.operation,
        "asked_by": list(place.wait.site),
        "stage": place.stage,
        "moved": group.moved,
        "active": place.active,
        "owns_gil": place.owns_gil,
        "frames": _frames(place.frames),
    }


def _frames(root_first: Sequence[Frame]) -> list[str]:
    """Newest call first, as py-spy writes them."""
    return [f"{one.function} ({one.where})" for one in reversed(root_first[-MOST_FRAMES:])]


def _divergence(divergence: Divergence | None) -> dict[str, Any] | None:
    if divergence is None:
        return None
    frame = divergence.frame
    return {
        "frame": frame.function if frame else None,
        "where": frame.where if frame else None,
        "branches": [
            {
                "frame": one.function if one else None,
                "where": one.where if one else None,
                "ranks": list(ranks),
            }
            for one, ranks in divergence.branches
        ],
    }


def _missing(one: Missing) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "kind": one.kind,
        "reason": one.reason,
        "fix": one.fix,
        "command": one.command,
        "pid": one.pid,
        "partial": one.partial,
    }


def _process(one: ProcessRead) -> dict[str, Any]:
    numbers = one.numbers
    parts = {name: getattr(numbers, name) for name in ("tp", "pp", "dp", "ep")} if numbers else {}
    return {
        "pid": one.pid,
        "title": one.title,
        "role": one.role,
        "label": one.rank,
        "rank": {name: number for name, number in parts.items() if number is not None} or None,
        "threads": one.threads,
        "unnamed_threads": one.unnamed_threads,
        "threads_without_frames": one.threads_without_frames,
        "samples": one.samples,
    }


def _failure(one: FailedRead) -> dict[str, Any]:
    return {
        "file": one.file,
        "kind": one.kind,
        "reason": one.reason,
        "fix": one.fix,
        "command": one.command,
    }
