"""A judgement in plain English: how many of how many, who, and where."""

import re
from collections.abc import Iterator, Sequence

from app.domain.counting import counted
from app.domain.stacks.frames import last_name
from app.domain.stacks.history import History
from app.domain.stacks.judging import Judgement, Peers, behind_in
from app.domain.stacks.samples import Missing
from app.domain.stacks.stillness import goes_on_counting, spends_its_time_there, stood_still

_STATES = {
    "T": "is stopped (state T)",
    "t": "is held by a debugger (state t)",
    "D": "sleeps in the kernel (state D)",
    "Z": "is a zombie: it has ended",
    "X": "has ended",
}
MOST_REASONS = 5
_GPU = ("GPU event", "GPU sync")
_HIDDEN = " A wait for the GPU may hide a collective that Python does not show."
_DIGITS = re.compile(r"([0-9]+)")


def says(
    peers: Peers,
    judgement: Judgement,
    *,
    stuck: bool | None,
    name: str | None,
    missing: Sequence[Missing],
) -> str:
    """The finding in a few sentences; *missing* of all ranks, not of *peers* alone."""
    head = _HEADS[judgement.verdict](peers, judgement)
    parts = [f"In {name}: {head}" if name else head, _movement(peers, judgement, stuck=stuck)]
    return " ".join(part for part in (*parts, _coverage(missing)) if part)


def spans(ranks: Sequence[str]) -> str:
    """``TP0-2, TP4`` for TP0, TP1, TP2, TP4."""
    runs: list[list[str]] = []
    step: tuple[int, ...] | None = None
    for rank in ranks:
        found = _step(runs[-1][-1], rank) if runs else None
        if found and (len(runs[-1]) == 1 or found == step):
            runs[-1].append(rank)
            step = found
        else:
            runs.append([rank])
    return ", ".join(map(_span, runs))


def _step(before: str, after: str) -> tuple[int, ...] | None:
    """Which numbers of a rank go on by one to the next; None where it is not the next."""
    one, two = _DIGITS.split(before), _DIGITS.split(after)
    if one[::2] != two[::2] or len(one) < 3 or one[-1]:
        return None
    step = tuple(int(new) - int(old) for old, new in zip(one[1::2], two[1::2], strict=True))
    return step if step[-1] == 1 and set(step) <= {0, 1} else None


def _span(run: Sequence[str]) -> str:
    """``TP0-3``; where several numbers go on together, ``TP0_EP0 to TP3_EP3``."""
    if len(run) < 3:
        return ", ".join(run)
    first, last = _DIGITS.split(run[0]), _DIGITS.split(run[-1])
    short = first[:-2] == last[:-2]
    return f"{run[0]}-{last[-2]}" if short else f"{run[0]} to {run[-1]}"


def _where(one: History) -> str:
    """``waits in all_reduce, asked for by writing_check``; ``is in evict (radix_cache.py:498)``."""
    place = one.last
    top = f"{place.top.function} ({place.top.where})" if place.top else "an unknown call"
    if place.wait.kind == "collective":
        asked = _asked_by(place.wait.site)
        return f"waits in {place.wait.operation or 'a collective'}{asked}"
    if place.wait.kind in _GPU:
        return f"waits for the GPU in {top}"
    doing = f"is in {top}"
    if place.wait.kind not in ("Python code", "C code", "unknown"):
        doing += f" – {place.wait.kind}"
    return f"{doing}, holding the GIL" if place.owns_gil else doing


def _asked_by(site: Sequence[str]) -> str:
    names = [last_name(key.partition(" (")[0]) for key in site[:2]]
    return f" ({' ← '.join(names)})" if names else ""


def _plural(verb_phrase: str, many: int) -> str:
    """``waits …`` of several: ``wait …``."""
    if many == 1:
        return verb_phrase
    return re.sub(r"^is ", "are ", re.sub(r"^waits ", "wait ", verb_phrase))


def _classes(peers: Peers, *, but: Sequence[str] = ()) -> Iterator[str]:
    total = f"{len(peers.histories)} read" if peers.missing else str(len(peers.histories))
    for alike in peers.classes():
        left = [one for one in alike if one.rank not in but]
        if left:
            doing = _plural(_where(left[0]), len(left))
            yield f"{len(left)} of {total} ({spans([one.rank for one in left])}) {doing}"


def _divergence(peers: Peers, judgement: Judgement) -> str:
    if judgement.ground == "state":
        return _held(peers, judgement)
    hidden = _HIDDEN if any(one.last.wait.kind in _GPU for one in peers.histories) else ""
    if not judgement.outliers:
        told = "; ".join(list(_classes(peers))[:4])
        return f"The ranks part: {told}.{hidden} Nothing here tells which side left the other."
    rest = "; ".join(list(_classes(peers, but=judgement.outliers))[:3])
    out = [one for one in peers.histories if one.rank in judgement.outliers]
    who = spans([one.rank for one in out])
    there = _plural(_where(out[0]), len(out)) if out else "was not read"
    if judgement.ground == "counts":
        return f"{_counts(peers, who)}; {who} {there}{f'; {rest}' if rest else ''}."
    link = "not there" if judgement.ground == "awaited" else "elsewhere"
    if len(out) == 1:
        return f"{rest}; {who} is {link}: it {there}.{hidden}"
    inside = [one.rank for one in peers.histories if one.rank not in judgement.outliers]
    each = "; ".join(list(_classes(peers, but=inside))[:3])
    return f"{rest}; {who} are {link}: {each}.{hidden}"


def _counts(peers: Peers, who: str) -> str:
    behind = behind_in(peers)
    assert behind is not None
    low, high = min(behind.by.of[rank] for rank in behind.ranks), max(behind.by.of.values())
    name = behind.by.communicator
    where = f" in communicator {name}" if name else ""
    return f"NCCL counts {low:,} collectives for {who}, {high:,} for others{where}"


def _held(peers: Peers, judgement: Judgement) -> str:
    held = [f"{rank} {_STATES[peers.states[rank]]}" for rank in judgement.outliers[:4]]
    rest = list(_classes(peers, but=judgement.outliers))[:3]
    told = f"{', '.join(held)}: nothing of it runs."
    return f"{told} {'; '.join(rest)}." if rest else told


def _different(peers: Peers, judgement: Judgement) -> str:
    told = "; ".join(list(_classes(peers))[:4])
    many = len(peers.histories)
    who = "Both ranks" if many == 2 else f"All {many} ranks"
    head = f"{who} wait in a collective, but not in the same one: {told}."
    if judgement.outliers:
        return f"{head} {spans(judgement.outliers)} differs; which side went wrong is not known."
    return f"{head} Which side went wrong is not known."


def _symmetric(peers: Peers, judgement: Judgement) -> str:
    total = peers.total
    if judgement.ground == "state":
        if total > 1:
            return f"All {total} ranks are held still by the kernel: none of them runs."
        rank = [*peers.ranks, *(one.rank for one in peers.missing)][0]
        return f"{rank}, the only rank, {_STATES[peers.states[rank]]}: nothing of it runs."
    doing = _plural(_where(peers.histories[0]), total)
    healthy_too = any(map(spends_its_time_there, peers.histories))
    also = " A server that is well spends its time there, too." if healthy_too else ""
    return (
        f"{total} of {total} ranks {doing}: no rank stands out.{also} Equal is no proof of health: "
        "the cause may lie below Python, in the network, or with a rank that is not among these."
    )


def _idle(peers: Peers, judgement: Judgement) -> str:
    read = len(peers.histories)
    if peers.total == 1:
        return f"{peers.ranks[0]}, the only rank, looks for new requests: the idle loop."
    return f"{read} of {peers.total} ranks look for new requests: the idle loop."


def _none(peers: Peers, judgement: Judgement) -> str:
    total = len(peers.histories)
    if peers.total == 1:
        alone = f"{peers.ranks[0]} {_where(peers.histories[0])}"
        return f"One rank, nothing to compare it with: {alone}."
    if judgement.ground == "moving":
        return f"{total} of {peers.total} ranks move on together; no rank keeps apart."
    if judgement.ground == "same":
        return f"{total} of {peers.total} ranks {_plural(_where(peers.histories[0]), total)}."
    return f"The ranks are at work in {len(peers.classes())} places, and none waits for another."


def _few(peers: Peers, judgement: Judgement) -> str:
    read, total = len(peers.histories), peers.total
    if judgement.ground == "torn":
        return "A rank seems apart, but its stack was read in motion and may be torn."
    if judgement.ground == "split":
        return f"{'; '.join(list(_classes(peers))[:4])}. The first to arrive wait for the others."
    if total == 0:
        return "No rank's stacks are here."
    if 2 * read > total:
        alike = f"{read} of {total} ranks read; what the others do decides."
        return f"{alike} {'; '.join(list(_classes(peers))[:3])}."
    partial = sum(one.partial for one in peers.missing)
    part = f", {partial} in part" if partial else ""
    told = "; ".join(list(_classes(peers))[:3])
    where = f" {told}." if told else ""
    return f"{read} of {total} ranks read whole{part}: that is not enough to compare them.{where}"


_HEADS = {
    "rank divergence": _divergence,
    "different collectives": _different,
    "symmetric": _symmetric,
    "idle": _idle,
    "no divergence": _none,
    "not enough evidence": _few,
}


def _movement(peers: Peers, judgement: Judgement, *, stuck: bool | None) -> str:
    if told := _by_counts(peers, judgement, stuck=stuck):
        return told
    if not peers.histories:
        return ""
    samples = min(len(one.places) for one in peers.histories)
    if samples < 2 and judgement.verdict == "idle":
        return "One sample does not show whether the loop turns."
    if samples < 2:
        return f"One sample cannot tell slow from stuck{_doubt(judgement)}."
    seconds = max((one.seconds or 0.0 for one in peers.histories), default=0.0)
    over = counted(samples, "sample") + (f" in {seconds:.0f} s" if seconds else "")
    if stuck:
        return f"Nothing moved over {over}: stuck."
    moving = [one.rank for one in peers.histories if one.moved_last]
    if stuck is False:
        slow = judgement.verdict == "rank divergence" and set(judgement.outliers) & set(moving)
        kind = "slow, not stuck" if slow else "not stuck"
        return f"{spans(moving)} moved over {over}: {kind}."
    if moving:
        return f"{spans(moving)} moved over {over}."
    return f"Nothing moved over {over}, which does not prove it stuck."


def _by_counts(peers: Peers, judgement: Judgement, *, stuck: bool | None) -> str:
    """What NCCL's counts show of movement; empty where they decide nothing."""
    if stood_still(peers, judgement):
        return "No count of NCCL changed between two answers: stuck."
    if stuck is False and goes_on_counting(peers, judgement):
        return "NCCL's counts of all of them grew meanwhile: not stuck."
    return ""


def _doubt(judgement: Judgement) -> str:
    """Ranks are read one after another, so a busy server's stand apart in most single samples."""
    apart = judgement.verdict in ("rank divergence", "different collectives")
    if not apart or judgement.ground in ("state", "counts"):
        return ""
    return ", nor a rank that is lost from one of a busy server: take a second"


def _coverage(missing: Sequence[Missing]) -> str:
    if not missing:
        return ""
    by_reason: dict[str, list[str]] = {}
    for one in sorted(missing, key=lambda one: one.kind == "not tried"):
        by_reason.setdefault(_reason(one), []).append(one.rank)
    shown = list(by_reason.items())[:MOST_REASONS]
    told = [f"{spans(ranks)} ({reason})" for reason, ranks in shown]
    left = len(missing) - sum(len(ranks) for _, ranks in shown)
    more = f", and {left} more" if left > 0 else ""
    return f"Not read, so unknown: {'; '.join(told)}{more}."


def _reason(one: Missing) -> str:
    return f"{one.reason[:1].lower()}{one.reason[1:]}".rstrip(".")
