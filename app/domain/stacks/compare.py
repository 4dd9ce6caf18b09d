"""Samples of ranks → one comparison: who differs, where they part, and whether anything moves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.stacks.counts import Counted
from app.domain.stacks.dump import Frame
from app.domain.stacks.history import History, history_of
from app.domain.stacks.judging import (
    Judgement,
    Peers,
    Verdict,
    behind_in,
    between_stages,
    held_still,
    judge,
    only_passes_on,
    weight,
)
from app.domain.stacks.peers import are_replicas, group_name, peer_groups
from app.domain.stacks.places import Place
from app.domain.stacks.samples import Missing, Sample
from app.domain.stacks.settling import settles
from app.domain.stacks.stillness import is_stuck
from app.domain.stacks.tree import Node, members, prefix_tree, where_they_part
from app.domain.stacks.wording import says
from app.domain.titles import RankNumbers, read_rank


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that do the same thing. *place* is that of its first rank."""

    ranks: tuple[str, ...]
    place: Place
    moved: bool | None


@dataclass(frozen=True, slots=True)
class Divergence:
    """The last call that all are in, and who goes where from it. *frame* None: none in common."""

    frame: Frame | None
    branches: tuple[tuple[Frame | None, tuple[str, ...]], ...]  # frame None: ends here


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the stacks of all ranks say together.

    *stuck* None: these samples cannot tell. *groups* is largest first, and holds every rank that
    was read; *peers* names the part that the verdict is about where the server has several.
    """

    verdict: Verdict
    stuck: bool | None
    says: str
    settles: tuple[str, ...]
    outliers: tuple[str, ...]
    groups: tuple[Group, ...]
    missing: tuple[Missing, ...]
    divergence: Divergence | None
    moved: Mapping[str, bool | None]
    samples: int  # of the rank that has most
    ground: str
    peers: str | None = None
    counted: Counted | None = None  # what NCCL counts, where that decided

    @property
    def ranks(self) -> int:
        return self.captured + len(self.missing)

    @property
    def captured(self) -> int:
        return len(self.moved)

    @property
    def majority_count(self) -> int:
        return len(self.groups[0].ranks) if self.groups else 0


def compare(
    samples: Sequence[Sample],
    missing: Sequence[Missing],
    *,
    counts: Sequence[Counted] = (),
    states: Mapping[str, str] | None = None,
) -> Comparison:
    """What *samples* say together; the order of ranks does not matter.

    *counts*: collectives that NCCL's RAS counts, for each communicator by itself. *states*:
    letters of the processes, those of ranks without stacks included. Both are stronger evidence
    than being a minority.
    """
    histories, unplaced = _histories(samples)
    gone = [one for one in (*missing, *unplaced) if one.rank not in {h.rank for h in histories}]
    numbers = _numbers(samples, gone)
    judged = _judged(histories, gone, numbers, counts, states or {})
    peers, judgement = judged[0]
    name = group_name(peers.ranks or ["?"], numbers, alone=len(judged) == 1)
    stuck = is_stuck(peers, judgement)
    behind = behind_in(peers) if judgement.ground == "counts" else None
    return Comparison(
        verdict=judgement.verdict,
        stuck=stuck,
        says=says(peers, judgement, stuck=stuck, name=name, missing=gone),
        settles=settles(peers, judgement, stuck=stuck),
        outliers=judgement.outliers,
        groups=_groups(histories),
        missing=tuple(gone),
        divergence=_divergence(peers.histories),
        moved={one.rank: one.moved for one in histories},
        samples=max((len(one.places) for one in histories), default=0),
        ground=judgement.ground,
        peers=name,
        counted=behind.by if behind else None,
    )


def tree_of(comparison: Comparison) -> tuple[list[str], Node]:
    """Ranks, and the prefix tree of their last samples: bit *i* is the *i*-th rank."""
    ranks = [rank for group in comparison.groups for rank in group.ranks]
    stacks = [
        (group.place.path, group.place.frames) for group in comparison.groups for _ in group.ranks
    ]
    return ranks, prefix_tree(stacks)


def _histories(samples: Sequence[Sample]) -> tuple[list[History], list[Missing]]:
    by_rank: dict[str, list[Sample]] = {}
    for sample in samples:
        by_rank.setdefault(sample.rank, []).append(sample)
    histories, unplaced = [], []
    for rank in sorted(by_rank, key=_in_rank_order):
        if history := history_of(by_rank[rank]):
            histories.append(history)
        else:
            pid = by_rank[rank][0].pid
            unplaced.append(Missing(rank, "no frames", "Its main thread has no calls.", pid=pid))
    return histories, unplaced


def _in_rank_order(rank: str) -> tuple[list[int], str]:
    told = read_rank(rank)
    numbers = [told.dp, told.pp, told.tp, told.ep] if told else []
    return [-1 if one is None else one for one in numbers], rank


def _numbers(
    samples: Iterable[Sample], missing: Iterable[Missing]
) -> dict[str, RankNumbers | None]:
    told = {one.rank: one.numbers or read_rank(one.rank) for one in samples}
    return told | {one.rank: one.numbers or read_rank(one.rank) for one in missing}


def _judged(
    histories: Sequence[History],
    missing: Sequence[Missing],
    numbers: Mapping[str, RankNumbers | None],
    counts: Sequence[Counted],
    states: Mapping[str, str],
) -> list[tuple[Peers, Judgement]]:
    """Each group of peers with its judgement, the one that matters most first."""
    everyone = Peers(tuple(histories), tuple(missing), states, counts)
    if (held := held_still(everyone)) and held.outliers:
        return [(everyone, held)]  # across stages and replicas: it is no matter of what they do
    by_rank = {one.rank: one for one in histories}
    lost = {one.rank: one for one in missing}
    groups = _peer_groups(list(by_rank), list(lost), numbers)
    judged = []
    for group in groups:
        here = tuple(by_rank[rank] for rank in group if rank in by_rank)
        gone = tuple(lost[rank] for rank in group if rank in lost)
        peers = Peers(here, gone, states, counts)
        judged.append((peers, judge(peers)))
    if judged and all(found.verdict == "idle" for _, found in judged):
        return [(everyone, judged[0][1])]
    judged.sort(key=lambda one: weight(*one))
    if len(judged) > 1 and not are_replicas([numbers.get(rank) for rank in by_rank]):
        return _across_stages(everyone, judged)
    return judged


def _across_stages(
    everyone: Peers, judged: list[tuple[Peers, Judgement]]
) -> list[tuple[Peers, Judgement]]:
    """*judged*, unless no stage has a finding of its own and some wait for others."""
    peers, strongest = judged[0]
    own = strongest.verdict in ("rank divergence", "different collectives", "symmetric")
    if own and not only_passes_on(peers):
        return judged
    found = between_stages(everyone)
    return [(everyone, found)] if found else judged


def _peer_groups(
    read: list[str], lost: list[str], numbers: Mapping[str, RankNumbers | None]
) -> list[list[str]]:
    """Peers; a lost rank that has no numbers is missed where most were read."""
    nameless = [rank for rank in lost if numbers.get(rank) is None]
    groups = peer_groups([*read, *(rank for rank in lost if rank not in nameless)], numbers)
    groups = groups or [[]]
    max(groups, key=len).extend(nameless)
    return groups


def _groups(histories: Sequence[History]) -> tuple[Group, ...]:
    classes: dict[tuple[str, ...], list[History]] = {}
    for one in histories:
        classes.setdefault(one.last.kind, []).append(one)
    groups = []
    for alike in sorted(classes.values(), key=len, reverse=True):
        moves = {one.moved for one in alike}
        moved = True if True in moves else (None if None in moves else False)
        groups.append(Group(tuple(one.rank for one in alike), alike[0].last, moved))
    return tuple(groups)


def _divergence(histories: Sequence[History]) -> Divergence | None:
    tree = prefix_tree([(one.last.path, one.last.frames) for one in histories])
    node = where_they_part(tree)
    if node is None:
        return None
    branches = [(child.frame, child.ranks) for child in node.children.values()]
    if node.ends:
        branches.append((None, node.ends))
    branches.sort(key=lambda branch: (-branch[1].bit_count(), branch[1] & -branch[1]))
    return Divergence(
        node.frame,
        tuple(
            (frame, tuple(histories[number].rank for number in members(ranks)))
            for frame, ranks in branches
        ),
    )
