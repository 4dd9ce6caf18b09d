"""Peers side by side → verdict and outliers: one rule a function, strongest evidence first.

In a hang the majority waits and the minority is the cause, but a minority may be a victim as
well: so what the kernel and NCCL say comes before who is outside of what the others wait for,
and that before who is rare.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.domain.stacks.counts import Behind, Counted, who_is_behind
from app.domain.stacks.history import History
from app.domain.stacks.samples import ENDED, HELD_STILL, Missing
from app.domain.stacks.waits import BLOCKED, FOR_PEERS, POINT_TO_POINT

Verdict = Literal[
    "rank divergence",
    "different collectives",
    "symmetric",
    "idle",
    "no divergence",
    "not enough evidence",
]
Ground = Literal[
    "state", "counts", "awaited", "rare", "coverage", "torn", "alone", "moving", "split", "same"
]


@dataclass(frozen=True, slots=True)
class Peers:
    """Ranks that must act together, with all that is known of them."""

    histories: tuple[History, ...]
    missing: tuple[Missing, ...]
    states: Mapping[str, str]
    counts: Sequence[Counted] = ()

    @property
    def total(self) -> int:
        return len(self.histories) + len(self.missing)

    @property
    def ranks(self) -> list[str]:
        return [one.rank for one in self.histories]

    def waiting(self) -> list[History]:
        """Those that wait for others: in a collective, or for the GPU, which may hide one."""
        return [one for one in self.histories if one.last.wait.kind in FOR_PEERS]

    def classes(self) -> list[list[History]]:
        """The ranks by what they do, the largest class first."""
        classes: dict[tuple[str, ...], list[History]] = {}
        for one in self.histories:
            classes.setdefault(one.last.kind, []).append(one)
        return sorted(classes.values(), key=len, reverse=True)

    def rare(self) -> list[str]:
        """The few outside the largest class; empty where they are no clear minority."""
        few = [one.rank for group in self.classes()[1:] for one in group]
        many = len(self.histories)
        return few if many >= 3 and 3 * len(few) <= many else []


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one rule says of peers, and on what ground."""

    verdict: Verdict
    ground: Ground
    outliers: tuple[str, ...] = ()


def judge(peers: Peers) -> Judgement:
    """The first rule that has something to say decides."""
    return next(found for rule in _RULES if (found := rule(peers)))


def held_still(peers: Peers) -> Judgement | None:
    """The kernel does not let them run, and lets others: that explains every wait."""
    moved = {one.rank: one.moved_last for one in peers.histories}
    known = [*peers.ranks, *(one.rank for one in peers.missing)]
    held = [
        rank for rank in known if _is_held(peers.states.get(rank), moved=moved.get(rank, False))
    ]
    if not held:
        return None
    if len(held) == len(known):
        return Judgement("symmetric", "state")
    return Judgement("rank divergence", "state", tuple(held))


def _is_held(state: str | None, *, moved: bool | None) -> bool:
    """D is also a moment of input and output: it counts where a second look confirms it."""
    if state in ENDED:
        return True
    return state in HELD_STILL and not moved and (state != "D" or moved is False)


def _counted(peers: Peers) -> Judgement | None:
    """NCCL counts fewer collectives for some."""
    if any(one.moved_last for one in peers.histories):
        return None  # ranks that run are counted at different moments
    behind = behind_in(peers)
    return Judgement("rank divergence", "counts", behind.ranks) if behind else None


def behind_in(peers: Peers) -> Behind | None:
    """Who of *peers* is behind by NCCL's counts, those without stacks included."""
    return who_is_behind(peers.counts, [*peers.ranks, *(one.rank for one in peers.missing)])


def _too_few(peers: Peers) -> Judgement | None:
    if peers.total == 1 and peers.histories:
        return None
    few = len(peers.histories) < 2 or 2 * len(peers.histories) <= peers.total
    return Judgement("not enough evidence", "coverage") if few else None


def _idle(peers: Peers) -> Judgement | None:
    """All look for work. Whoever is missing may be what they wait for, unless they go on."""
    if any(one.last.stage != "idle" for one in peers.histories):
        return None
    if peers.missing and not all(one.moved_last for one in peers.histories):
        return Judgement("not enough evidence", "coverage")
    return Judgement("idle", "same")


def _alone(peers: Peers) -> Judgement | None:
    return Judgement("no divergence", "alone") if peers.total == 1 else None


def _all_moving(peers: Peers) -> Judgement | None:
    return Judgement("no divergence", "moving") if _go_on(peers.histories) else None


def _all_the_same(peers: Peers) -> Judgement | None:
    if len(peers.classes()) > 1:
        return None
    wait = peers.histories[0].last.wait.kind
    still = wait in BLOCKED and all(one.moved is False for one in peers.histories)
    if wait not in FOR_PEERS and not still:
        return Judgement("no divergence", "same")
    if peers.missing:
        return Judgement("not enough evidence", "coverage")
    return Judgement("symmetric", "same")


def _all_waiting(peers: Peers) -> Judgement | None:
    """Nobody is free to come: each waits for another."""
    waiting = peers.waiting()
    if len(waiting) < len(peers.histories):
        return None
    ground: Ground = "rare" if peers.rare() else "split"
    if all(one.last.wait.kind == "collective" for one in waiting):
        return _unless_doubtful(
            peers, Judgement("different collectives", ground, tuple(peers.rare()))
        )
    return _unless_doubtful(peers, Judgement("rank divergence", ground, tuple(peers.rare())))


def _some_waiting(peers: Peers) -> Judgement | None:
    """Some wait for others: those who are not there are what they wait for."""
    waiting = peers.waiting()
    if not waiting:
        return None
    there = {one.rank for one in waiting}
    away = [one for one in peers.histories if one.rank not in there]
    if 2 * len(away) <= len(peers.histories):
        if _go_on(waiting):
            return Judgement("no divergence", "moving")
        found = Judgement("rank divergence", "awaited", tuple(one.rank for one in away))
        return _unless_doubtful(peers, found)
    if all(one.moved is False for one in peers.histories) or _at_one_line(away):
        found = Judgement("rank divergence", "rare", tuple(peers.rare()))
        return _unless_doubtful(peers, found)
    return Judgement("not enough evidence", "split")  # the first to arrive wait for the others


def between_stages(peers: Peers) -> Judgement | None:
    """Stages of a pipeline that wait for what another one passes on, beside some that do not.

    A healthy pipeline looks like that in most moments, so only what does not move is told.
    """
    passing = [one for one in peers.histories if one.last.wait.operation in POINT_TO_POINT]
    away = [one for one in peers.histories if one not in passing]
    if not passing or not away or all(one.last.stage == "idle" for one in peers.histories):
        return None
    looks = min(len(one.places) for one in peers.histories)
    sure = looks > 2 or all(one.last.stage != "batch" for one in away)
    if not sure or any(one.moved is not False for one in peers.histories):
        return Judgement("not enough evidence", "split")
    few = 2 * len(away) <= len(peers.histories)
    found = Judgement("rank divergence", "awaited", tuple(one.rank for one in away if few))
    return _unless_doubtful(peers, found)


def _at_one_line(histories: Sequence[History]) -> bool:
    """Whether all stand at the same line: then a call that py-spy does not show holds them."""
    lines = {(one.last.kind, one.last.top) for one in histories}
    return len(lines) == 1 and len(histories) > 2


def _none_waiting(peers: Peers) -> Judgement:
    """Nobody waits for a peer; a rank that stands still while others do not is told.

    So is one apart from a crowd whose launches the GPUs take no more: a full queue blocks them.
    """
    rare = peers.rare()
    still = [one for one in peers.histories if one.rank in rare and one.moved is False]
    blocked = all(one.last.wait.kind in BLOCKED for one in still)
    if rare and len(still) == len(rare) and (blocked or _launch_in_vain(peers, rare)):
        return _unless_doubtful(peers, Judgement("rank divergence", "rare", tuple(rare)))
    return Judgement("no divergence", "split")


def _launch_in_vain(peers: Peers, but: Sequence[str]) -> bool:
    crowd = [one for one in peers.histories if one.rank not in but]
    return all(one.moved is False and one.last.wait.kind == "GPU call" for one in crowd)


def _unless_doubtful(peers: Peers, found: Judgement) -> Judgement:
    """*found*, unless it would accuse on too little.

    A stack that was read in motion may be of two moments. And where ranks are missing, the
    others must be most of all ranks, not only of those that were read.
    """
    others = len(peers.histories) - len(found.outliers)
    if found.outliers and peers.missing and 2 * others <= peers.total:
        return Judgement("not enough evidence", "coverage")
    torn = {one.rank for one in peers.histories if one.torn}
    if torn.isdisjoint(found.outliers):
        return found
    left = tuple(rank for rank in found.outliers if rank not in torn)
    return Judgement(found.verdict if left else "not enough evidence", "torn", left)


def _go_on(histories: Sequence[History]) -> bool:
    return bool(histories) and all(one.moved_last for one in histories)


_RULES: tuple[Callable[[Peers], Judgement | None], ...] = (
    held_still,
    _counted,
    _too_few,
    _idle,
    _all_moving,
    _alone,
    _all_the_same,
    _all_waiting,
    _some_waiting,
    _none_waiting,
)

_WEIGHT: tuple[Verdict, ...] = (
    "rank divergence",
    "different collectives",
    "symmetric",
    "not enough evidence",
    "no divergence",
    "idle",
)


def weight(peers: Peers, judgement: Judgement) -> tuple[int, bool, bool, int]:
    """Sorts the judgement that matters most first; stages that only wait for another last."""
    named = not judgement.outliers
    return _WEIGHT.index(judgement.verdict), only_passes_on(peers), named, -peers.total


def only_passes_on(peers: Peers) -> bool:
    """Whether all of them wait for another stage."""
    operations = {one.last.wait.operation for one in peers.histories}
    return bool(operations) and operations <= POINT_TO_POINT
