"""How a comparison of ranks is to be read: each thing it says, with how well it is known."""

from collections.abc import Iterator

from app.domain.counting import counted
from app.domain.stacks.samples import ENDED, HELD_STILL
from app.domain.stacks.wording import spans
from app.web.views.comparison import ComparisonKept
from app.web.views.ranks import Reading

_GROUNDS = {
    "counts": ("supported", "NCCL itself counts fewer collectives for {who} than for its peers."),
    "awaited": ("supported", "The others wait for peers, and {who} is not where they wait."),
    "rare": (
        "hypothesis",
        "{who} is rare among its peers. That is weak: a minority may be the victim.",
    ),
    "split": ("unknown", "Which side left the other: neither is a clear minority."),
    "torn": ("unknown", "Who differs: a stack was read in motion, and one sample may be torn."),
    "coverage": ("unknown", "Who differs: too few ranks were read."),
    "alone": ("unknown", "Whether it differs: one rank has no peers to be compared with."),
    "moving": ("supported", "The ranks move between samples."),
    "same": ("supported", "All that were read do the same. That is no proof of health."),
}
_PROOFS = ("established", "supported", "hypothesis", "unknown")
_NAMES = 120  # characters of ranks


def readings(comparison: ComparisonKept) -> list[Reading]:
    """What is known best first, then what is not known."""
    return sorted(_readings(comparison), key=lambda one: _PROOFS.index(one.proof))


def _readings(comparison: ComparisonKept) -> Iterator[Reading]:
    who = _named(comparison.outliers) or "nobody"
    if comparison.ground == "state":
        yield from _held(comparison)
    elif comparison.ground in _GROUNDS:
        proof, says = _GROUNDS[comparison.ground]
        yield Reading(proof, says.format(who=who))
    if comparison.divergence:
        frame = comparison.divergence.frame
        where = f"after {frame[:_NAMES]}" if frame else "at the root: they share no call"
        yield Reading("established", f"The stacks part {where}.")
    yield from _stuck(comparison)
    if comparison.missing:
        lost = _named([one.rank for one in comparison.missing])
        yield Reading("unknown", f"What {lost} did: not read, so counted with no class.")
    if comparison.outliers and comparison.ground != "state":
        yield Reading("hypothesis", f"{who}: where to look first, not who is to blame.")


def _held(comparison: ComparisonKept) -> Iterator[Reading]:
    """Who has ended, and whom the kernel holds: where all are held, nobody is named apart."""
    states = comparison.states
    ranks = [rank for rank in comparison.outliers or states if states.get(rank) in HELD_STILL]
    before = "That comes before what stacks say."
    if ended := [rank for rank in ranks if states[rank] in ENDED]:
        yield Reading("established", f"Ended: {_named(ended)}. {before}")
    if still := [rank for rank in ranks if rank not in ended]:
        yield Reading("established", f"The kernel holds {_named(still)} still. {before}")


def _stuck(comparison: ComparisonKept) -> Iterator[Reading]:
    samples = counted(comparison.samples, "sample")
    if comparison.stuck:
        yield Reading("supported", f"Stuck: no rank moved over {samples}.")
    elif comparison.stuck is False:
        yield Reading("supported", f"Not stuck: what matters moved between {samples}.")
    elif comparison.captured:
        looks = "one sample" if comparison.samples == 1 else samples
        yield Reading("unknown", f"Slow or stuck: {looks} cannot tell here.")


def _named(ranks: tuple[str, ...] | list[str]) -> str:
    told = spans(ranks)
    return told if len(told) <= _NAMES else f"{told[: _NAMES - 1]}…"
