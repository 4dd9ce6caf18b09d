"""What would settle what stacks leave open, the cheapest look first."""

from collections.abc import Iterator, Sequence

from app.domain.stacks.judging import Judgement, Peers
from app.domain.stacks.samples import ENDED, Missing
from app.domain.stacks.wording import MOST_REASONS, spans


def settles(peers: Peers, judgement: Judgement, *, stuck: bool | None) -> tuple[str, ...]:
    """What to look at next, the cheapest first; empty where nothing is open."""
    return tuple(_settles(peers, judgement, stuck=stuck))


def _settles(peers: Peers, judgement: Judgement, *, stuck: bool | None) -> Iterator[str]:
    yield from _fixes(peers.missing)
    open_still = stuck is None and judgement.verdict != "idle" and judgement.ground != "state"
    looks = max((len(one.places) for one in peers.histories), default=0)
    if open_still and looks == 1:
        yield "Two more samples, 10 s apart: what moves is slow, what does not is stuck."
    if open_still and looks > 1:
        yield "A later sample, and the server's counters, twice: who is busy goes on."
    if judgement.ground == "state":
        yield from _what_holds(peers, judgement)
    parted = judgement.verdict in ("rank divergence", "different collectives", "symmetric")
    if parted and judgement.ground not in ("counts", "state"):
        yield "NCCL RAS, twice: the lowest count of collectives names the rank that is behind."
    if judgement.verdict == "symmetric" and judgement.ground != "state":
        yield (
            f"Whether {peers.total} is the whole world (tp × pp × nodes), the transport between "
            "hosts, and native stacks."
        )
    kinds = {one.last.wait.kind for one in peers.histories}
    if judgement.verdict != "idle" and kinds & {"GPU event", "GPU sync"}:
        yield (
            "Native stacks, then a coredump, of one rank that waits for the GPU: the wait may hide "
            "a collective. 100 % utilisation at low power is a spin, not progress."
        )
    if "garbage collection" in kinds:
        yield "The server's log of garbage collections: a pause ends by itself."


def _what_holds(peers: Peers, judgement: Judgement) -> Iterator[str]:
    named = judgement.outliers or [*peers.ranks, *(one.rank for one in peers.missing)]
    ended = [rank for rank in named if peers.states.get(rank) in ENDED]
    if ended:
        yield f"How {spans(ended)} ended: the server's log, and the kernel's (dmesg)."
    if len(ended) < len(named):
        yield (
            "Who stopped it: a debugger, a frozen cgroup, or kill -STOP. If nobody means it: "
            "kill -CONT."
        )


def _fixes(missing: Sequence[Missing]) -> Iterator[str]:
    """What to do about ranks that were not read, those with the same fix together."""
    by_fix: dict[str, list[str]] = {}
    for one in missing:
        by_fix.setdefault(one.fix or "Take the stacks again.", []).append(one.rank)
    for fix, ranks in list(by_fix.items())[:MOST_REASONS]:
        yield f"{spans(ranks)}: {fix}"
