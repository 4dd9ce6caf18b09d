"""A comparison of stacks → claims, each no stronger than the ground that it was reached on.

A stack shows where a rank is; that nothing moves needs two of them, and who is the cause needs
more than being rare. What names nobody, or moved, is told as a note.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.claims import Claim, Evidence, Level, ProblemClass, Status
from app.domain.findings import STANDSTILL, Conclusion, Open
from app.domain.ladder import Kind
from app.domain.stacks.samples import ENDED

Comparison = Mapping[str, Any]  # the document of ``stacks compare``

MOST_EVIDENCE = 6
WEDGED_SECONDS = 5.0  # between the samples of a rank, of which none moved
_MOST_WORDS = 400
_MOST_OPEN = 3
_PROVEN = frozenset(("state", "counts"))  # said by the kernel, and by NCCL
_WEAK = frozenset(("rare", "torn"))
_IDS = {
    "rank divergence": "rank-divergence",
    "different collectives": "different-collectives",
    "symmetric": "ranks-symmetric",
    "idle": "stacks-idle",
    "no divergence": "no-rank-apart",
    "not enough evidence": "stacks-incomplete",
}
_PARTED = frozenset(("rank divergence", "different collectives", "symmetric"))
_OPEN_WHY = "The stacks leave it open."
_OPEN: tuple[tuple[str, Kind | None, str], ...] = (
    ("NCCL RAS", "nccl ras", "Read-only."),
    ("Native stacks", "native stacks", "Each process is held for some seconds while it is read."),
    ("Two more samples", None, "py-spy stops each process for less than a second."),
    ("How ", "host facts", "Read-only."),
    ("Who stopped it", None, "Whoever stopped it may still need it so."),
)


def stack_findings(
    comparison: Comparison, artifacts: Mapping[str, int], seconds: float | None
) -> Conclusion:
    """What *comparison* claims; *artifacts* are the numbers of the files by rank.

    *seconds* lie between the first and the last sample of each rank; None: not known.
    """
    stuck = comparison["stuck"] is True
    proof = tuple(_evidence(comparison, artifacts))
    claim = Claim(
        rule_of(comparison),
        _shortened(comparison["says"]),
        _status(comparison),
        proof,
        _level(comparison),
    )
    return Conclusion(
        claims=(claim,),
        ruled_out=tuple(_ruled_out(comparison, proof)),
        settles=tuple(_open(comparison["settles"])),
        problem_class=ProblemClass.HANG if stuck else None,
        wedged=stuck and _long_enough(seconds) and not _all_idle(comparison),
        ranks=comparison["captured"],
    )


def rule_of(comparison: Comparison) -> str:
    """The id of the claim that a comparison makes, as docs/signals.md lists it."""
    if comparison["ground"] == "state":
        states = comparison.get("states") or {}
        held = comparison["outliers"] or list(states)
        ended = held and all(states.get(rank) in ENDED for rank in held)
        return "rank-ended" if ended else "rank-stopped"
    return _IDS.get(comparison["verdict"], "stacks-incomplete")


def _status(comparison: Comparison) -> Status:
    verdict, ground, stuck = (comparison[key] for key in ("verdict", "ground", "stuck"))
    if ground in _PROVEN or verdict == "idle" or (verdict == "no divergence" and stuck is False):
        return Status.ESTABLISHED
    if verdict == "not enough evidence":
        return Status.UNKNOWN
    names_the_rare = verdict == "rank divergence" and ground in _WEAK
    if verdict == "no divergence" or (stuck is not None and not names_the_rare):
        return Status.SUPPORTED
    return Status.HYPOTHESIS


def _level(comparison: Comparison) -> Level:
    """Bad only where something is held or proven stuck; one sample of busy ranks is a note."""
    verdict, stuck = comparison["verdict"], comparison["stuck"]
    if comparison["ground"] == "state" or (verdict in _PARTED and stuck is True):
        return Level.BAD
    open_still = stuck is None and comparison["samples"] > 1
    if comparison["ground"] == "counts" or (
        open_still and verdict in ("rank divergence", "different collectives")
    ):
        return Level.WARN
    return Level.NOTE


def _evidence(comparison: Comparison, artifacts: Mapping[str, int]) -> Iterator[Evidence]:
    """What NCCL counts, the place of each rank apart, then of one rank of each group."""
    yield from _counts(comparison)
    groups: Sequence[Mapping[str, Any]] = comparison["groups"]
    by_rank = {rank: group for group in groups for rank in group["ranks"]}
    told = [*comparison["outliers"], *(group["ranks"][0] for group in groups)]
    known = [rank for rank in dict.fromkeys(told) if rank in artifacts]
    states = comparison.get("states") or {}
    for rank in known[:MOST_EVIDENCE]:
        group = by_rank.get(rank) or {}
        place = f"{group.get('top') or 'no call'} ({group.get('where') or 'unknown'})"
        value = f"state {states[rank]}" if rank in states else group.get("primitive")
        yield Evidence(f"artifact {artifacts[rank]}", f"{rank}: {place}", value)


def _counts(comparison: Comparison) -> Iterator[Evidence]:
    """The answers of NCCL that decided."""
    if not (counted := comparison.get("counted")):
        return
    low = [rank for rank in comparison["outliers"] if rank in counted["counts"]][:MOST_EVIDENCE]
    told = ", ".join(f"{rank}: {counted['counts'][rank]}" for rank in low)
    value = f"{told}, highest {max(counted['counts'].values())}"
    for source in counted["sources"]:
        yield Evidence(f"artifact {source}", f"communicator {counted['communicator']}", value)


def _ruled_out(comparison: Comparison, proof: tuple[Evidence, ...]) -> Iterator[Claim]:
    """Only that all ranks moved rules out a standstill, and only if none is missing."""
    whole = comparison["captured"] > 1 and not comparison["missing"]
    if whole and comparison["ground"] == "moving":
        says = f"A standstill: {_shortened(comparison['says'])}"
        yield Claim(STANDSTILL, says, Status.ESTABLISHED, proof)


def _open(settles: Sequence[str]) -> Iterator[Open]:
    for text in settles[:_MOST_OPEN]:
        rung, risk = next(
            ((rung, risk) for head, rung, risk in _OPEN if text.startswith(head)), (None, "None.")
        )
        yield Open(text, _OPEN_WHY, risk, rung=rung)


def _long_enough(seconds: float | None) -> bool:
    return seconds is not None and round(seconds, 1) >= WEDGED_SECONDS


def _all_idle(comparison: Comparison) -> bool:
    return all(group["stage"] == "idle" for group in comparison["groups"])


def _shortened(says: str) -> str:
    """*says* up to the end of the last sentence that fits."""
    if len(says) <= _MOST_WORDS:
        return says
    head, dot, _ = says[:_MOST_WORDS].rpartition(". ")
    return f"{head}." if dot else f"{says[: _MOST_WORDS - 1]}…"
