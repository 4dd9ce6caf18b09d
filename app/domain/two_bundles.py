"""What two bundles of one server say together: it stood still, or it was restarted."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from app.domain.claims import Claim, Evidence, Level, Status
from app.domain.figures import epoch_seconds, figure, table
from app.domain.health_table import WEDGED_SECONDS

Summary = Mapping[str, Any]


def between_bundles(newest_first: Sequence[Summary]) -> list[dict[str, Any]]:
    """Claims on each pair of neighbouring bundles of one target, newest pair first."""
    by_target: dict[Any, list[Summary]] = {}
    for summary in newest_first:
        by_target.setdefault(summary.get("base_url"), []).append(summary)
    claims = []
    for bundles in by_target.values():
        for later, earlier in pairwise(bundles):
            found = stood_still(earlier, later) or restarted(earlier, later)
            claims += [found.as_json()] if found else []
    return claims


def stood_still(earlier: Summary, later: Summary) -> Claim | None:
    """Work in both bundles, at least a minute apart, and every counter as it was.

    Both looks must have work: a request that came between two idle looks proves nothing.
    """
    seconds = _apart(earlier, later)
    before, after = _counters(earlier), _counters(later)
    shared = sorted(before.keys() & after.keys())
    work = table(earlier.get("progress")).get("work") and table(later.get("progress")).get("work")
    if seconds is None or seconds < WEDGED_SECONDS or not shared or not work:
        return None
    if table(later.get("progress")).get("moved") or any(before[n] != after[n] for n in shared):
        return None
    says = (
        f"Requests are in the server in two bundles {seconds:.0f} s apart, and none of "
        f"{len(shared)} counters moved in between."
    )
    proof = tuple(_place(later, name, after[name]) for name in shared[:6])
    return Claim("wedged-between-bundles", says, Status.ESTABLISHED, proof, Level.BAD)


def restarted(earlier: Summary, later: Summary) -> Claim | None:
    """A counter is lower than it was in the bundle before."""
    before, after = _counters(earlier), _counters(later)
    fell = sorted(name for name in before.keys() & after.keys() if after[name] < before[name])
    if not fell:
        return None
    says = (
        f"{len(fell)} counters are lower than in the bundle before ({', '.join(fell[:3])}): the "
        "server was restarted in between, and what its processes could have shown is gone."
    )
    proof = tuple(_place(later, name, after[name]) for name in fell[:6])
    return Claim("restart-between-bundles", says, Status.ESTABLISHED, proof, Level.WARN)


def _apart(earlier: Summary, later: Summary) -> float | None:
    first, last = (
        epoch_seconds(earlier.get("collected_at")),
        epoch_seconds(later.get("collected_at")),
    )
    return None if first is None or last is None else last - first


def _counters(summary: Summary) -> dict[str, float]:
    told = table(table(summary.get("progress")).get("counters"))
    return {name: value for name, one in told.items() if (value := figure(one)) is not None}


def _place(summary: Summary, name: str, value: float) -> Evidence:
    """Where the counter of *name* stands in the bundle of *summary*."""
    metric = name.startswith("sglang")
    told = table(summary.get("progress" if metric else "load"))
    capture = told.get("counters_from" if metric else "artifact")
    bundle = summary.get("artifact")
    return Evidence(f"{bundle}/{capture}" if bundle else str(capture), name, value)
