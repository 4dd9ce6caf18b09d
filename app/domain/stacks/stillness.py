"""Stuck, slow, or unknown: what moved and what did not, and when that proves nothing."""

from collections.abc import Sequence

from app.domain.stacks.counts import all_grew
from app.domain.stacks.history import History
from app.domain.stacks.judging import Judgement, Peers, behind_in

_SURE_IN_A_BATCH = 3  # samples: a busy server is in its forward pass in any two of them


def is_stuck(peers: Peers, judgement: Judgement) -> bool | None:
    """Whether these ranks are stuck: True only where two samples or more show it.

    False as soon as those that matter moved between the last two samples. Waiting for the GPU
    together, and the idle loop, look the same in a healthy server however often one looks.
    """
    if stood_still(peers, judgement):
        return True
    if goes_on_counting(peers, judgement):
        return False
    known = [one for one in peers.histories if one.moved is not None]
    if not known:
        return None
    if _moves(peers, judgement, known):
        return False
    if judgement.verdict not in ("rank divergence", "different collectives", "symmetric"):
        return None
    if len(known) < len(peers.histories) or any(one.moved for one in known):
        return None
    return None if _doubtful(peers, judgement) else True


def stood_still(peers: Peers, judgement: Judgement) -> bool:
    """Whether NCCL counted the same twice while some were behind: one sample is enough then."""
    if judgement.ground != "counts" or any(
        one.last.wait.kind == "garbage collection" for one in peers.histories
    ):
        return False
    behind = behind_in(peers)
    return behind is not None and behind.by.grew is False


def goes_on_counting(peers: Peers, judgement: Judgement) -> bool:
    """Whether NCCL counted more for every rank meanwhile, and the kernel holds none of them."""
    if judgement.ground == "state" or not peers.histories:
        return False
    return all_grew(peers.counts, peers.ranks)


def _moves(peers: Peers, judgement: Judgement, known: Sequence[History]) -> bool:
    moving = {one.rank for one in known if one.moved_last}
    if judgement.verdict == "rank divergence" and judgement.outliers:
        crowd = set(peers.ranks) - set(judgement.outliers)
        return not moving.isdisjoint(judgement.outliers) or bool(crowd and crowd <= moving)
    return bool(moving)


def _doubtful(peers: Peers, judgement: Judgement) -> bool:
    """Whether it may be chance, a pause or useful work all the same."""
    histories = peers.histories
    if any(one.soon or one.flickers or one.torn for one in histories):
        return True
    if any(one.last.wait.kind == "garbage collection" for one in histories):
        return True
    if judgement.ground in ("state", "counts"):
        return False
    if all(one.last.stage == "idle" for one in histories):
        return True
    together = judgement.verdict == "symmetric"
    if together and any(spends_its_time_there(one) for one in histories):
        return True
    in_batch = all(one.last.stage == "batch" for one in histories)
    few = min(len(one.places) for one in histories) < _SURE_IN_A_BATCH
    return in_batch and (together or few)


def spends_its_time_there(one: History) -> bool:
    """Whether a healthy server is most of its time where *one* is, all ranks together.

    With attention DP the idle loop itself is a collective: the ranks ask each other for work.
    """
    waits = one.last.wait
    syncs = any("mlp_sync" in call for call in waits.site)
    return syncs or waits.kind in ("GPU event", "GPU sync")
