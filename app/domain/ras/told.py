"""A look at NCCL's RAS in plain English, and as a document."""

from collections.abc import Iterator, Sequence
from typing import Any

from app.domain.ras.look import Gone, RasLook
from app.domain.ras.status import Absent, Communicator
from app.domain.ras.watch import APART, Taken, Watched
from app.domain.stacks.wording import spans

MOST_SHOWN = 20  # communicators, those that matter most
MOST_NAMED = 16  # ranks or processes of one sentence or list
_UNCOUNTED = "What runs in CUDA graphs is not counted, so that proves nothing."


def told(look: RasLook) -> dict[str, Any]:
    """*look* as the part ``ras`` of a diagnostic's answer and of ``stacks compare --json``."""
    shown = look.watched[:MOST_SHOWN]
    return {
        "says": says(look),
        "stuck": stuck(look),
        "seconds": look.seconds,
        "readings": [_reading(one) for one in look.taken],
        "unread": [{"source": one.source, "why": one.why} for one in look.unread],
        "communicators": look.many,
        "ranks": look.ranks,
        "dead": [_gone(one) for one in look.dead[:MOST_NAMED]],
        "dead_count": look.dead_count,
        "silent": [_gone(one) for one in look.silent[:MOST_NAMED]],
        "silent_count": look.silent_count,
        "shown": [_watched(look, one) for one in shown],
        "left_out": max(0, look.many - len(shown)),
        "all_grew": everything_grew(look),
    }


def stuck(look: RasLook) -> bool | None:
    """True if a communicator stands still with a difference, False if some count grew."""
    if any(one.stuck for one in look.watched):
        return True
    return False if any(one.growth in ("all", "some") for one in look.watched) else None


def everything_grew(look: RasLook) -> bool:
    """Whether each process that NCCL knows launched more; a rank that is lost did not."""
    if look.dead_count or look.silent_count or not all(one.status.whole for one in look.taken):
        return False
    every = {m.whose for one in look.watched for m in one.last.members}
    grew = {m.whose for one in look.watched if one.growth == "all" for m in one.last.members}
    return bool(every) and every == grew and all(one.status.form == "json" for one in look.taken)


def says(look: RasLook) -> str:
    """What matters, in a few sentences; the first is the finding."""
    if not look.taken:
        return "Nothing that NCCL answered can be read."
    return " ".join(_sentences(look))


def _sentences(look: RasLook) -> Iterator[str]:
    if look.dead_count:
        yield f"NCCL gave up {_processes(look.dead_count, look.dead)}."
    apart = [one for one in look.watched if one.standing in APART]
    for one in apart[:2]:
        yield communicator_says(look, one)
    if len(apart) > 2:
        yield f"Ranks differ in {len(apart) - 2:,} more communicators."
    if look.silent_count:
        yield f"NCCL has no answer of {_processes(look.silent_count, look.silent)}."
    failed = [one for each in look.watched for one in errors(look, each)]
    if failed:
        yield f"{'; '.join(failed[:4])}."
    if not apart:
        yield _nothing_apart(look)
    if not all(one.status.whole for one in look.taken):
        yield "An answer is cut short, so what is missing in it is not known."


def communicator_says(look: RasLook, one: Watched) -> str:
    """``TP3 launched 6,649 AllReduce, others up to 6,650, in communicator cf26 (8 ranks). …``."""
    size = one.last.size
    many = f" ({size:,} ranks)" if size else ""
    where = f"in communicator {one.last.short}{many}"
    return f"{_begun(_standing(look, one))}, {where}. {movement(one)}"


def movement(one: Watched) -> str:
    """Whether its counts grew."""
    over = f" in {one.seconds:.0f} s" if one.seconds else ""
    if one.growth is None:
        return "One answer cannot tell slow from stuck."
    if one.growth == "all":
        return f"All its counts grew{over}: it moves."
    if one.growth == "some":
        return f"Counts grew{over}: it moves."
    if one.standing in APART:
        return f"No count grew{over}: stuck."
    return f"No count grew{over}. {_UNCOUNTED}"


def errors(look: RasLook, one: Watched) -> list[str]:
    """What ranks of a communicator report, alike ones together."""
    alike: dict[str, list[int]] = {}
    for member in one.last.members:
        if member.error:
            alike.setdefault(f"reports {member.error!r}", []).append(member.rank)
        if member.state == "ABORT":
            alike.setdefault("aborts the communicator", []).append(member.rank)
    return [
        f"{_begun(_who(look, one, ranks, len(ranks)))} {what} in {one.last.short}"
        for what, ranks in alike.items()
    ]


def who(look: RasLook, one: Watched, rank: int) -> str:
    """``TP3``; ``rank 3`` where that is not known."""
    return look.names[one.last.id].labels.get(rank, f"rank {rank}")


def _standing(look: RasLook, one: Watched) -> str:
    what, low, high = _counts(one)
    few = _who(look, one, one.few, one.few_count)
    if one.standing == "behind":
        return f"{few} launched {low:,} {what}, others up to {high:,}"
    if one.standing == "ahead":
        return f"{few} launched up to {high:,} {what}, the others {low:,}"
    if one.standing == "different collectives":
        led = f"; {few} differ{'' if len(one.few) > 1 else 's'}" if one.few else ""
        return f"ranks launched different collectives{led}"
    return "ranks launched different numbers of collectives, and who did is not told"


def _counts(one: Watched) -> tuple[str, int, int]:
    """What is counted, the lowest and the highest: of one kind where only that one differs."""
    differing = {kind: counts for kind, counts in one.last.spread.items() if len(counts) > 1}
    if len(differing) == 1:
        [(kind, counts)] = differing.items()
        what = "collectives" if kind == "collective" else kind
        return what, min(counts), max(counts)
    return "collectives", one.low, one.high


def _nothing_apart(look: RasLook) -> str:
    if any(one.growth in ("all", "some") for one in look.watched):
        over = f" in {look.seconds:.0f} s" if look.seconds else ""
        return f"No rank is behind, and counts grew{over}: NCCL moves."
    if look.many == 0:
        return "NCCL knows no communicator."
    spoke = f"No rank is behind in {look.many:,} communicator{'s' if look.many != 1 else ''}"
    if len(look.taken) < 2:
        return f"{spoke}. One answer cannot tell slow from stuck."
    if any(one.growth == "none" for one in look.watched):
        return f"{spoke}, and no count grew. {_UNCOUNTED}"
    return f"{spoke}. These answers do not tell whether counts grew."


def _processes(many: int, gone: Sequence[Gone]) -> str:
    named = [_process(one) for one in gone[:4]]
    more = f" and {many - len(named)} more" if named and many > len(named) else ""
    which = f": {', '.join(named)}{more}" if named else ""
    return f"{many:,} process{'es' if many != 1 else ''}{which}"


def _process(one: Gone) -> str:
    told = f"pid {one.whose.pid or 'unknown'} on {one.whose.host or 'an unknown host'}"
    return f"{one.label} ({told})" if one.label else told


def _begun(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _who(look: RasLook, one: Watched, ranks: Sequence[int], many: int) -> str:
    if not ranks:
        return f"{many:,} ranks that are not named"
    named = spans([who(look, one, rank) for rank in ranks[:MOST_NAMED]])
    return f"{named} and {many - MOST_NAMED:,} more" if many > MOST_NAMED else named


def _reading(one: Taken) -> dict[str, Any]:
    status = one.status
    return {
        "source": one.source,
        "form": status.form,
        "version": status.version,
        "whole": status.whole,
        "at": one.at.isoformat() if one.at else status.written_at,
        "timeouts": status.timeouts,
    }


def _gone(one: Gone) -> dict[str, Any]:
    return {"host": one.whose.host, "pid": one.whose.pid, "label": one.label}


def _watched(look: RasLook, one: Watched) -> dict[str, Any]:
    what, low, high = _counts(one)
    return {
        "communicator": one.last.id,
        "size": one.last.size,
        "standing": one.standing,
        "stuck": one.stuck,
        "growth": one.growth,
        "seconds": one.seconds,
        "says": communicator_says(look, one) if one.standing in APART else movement(one),
        "kind": what,
        "low": low if one.counted else None,
        "high": high if one.counted else None,
        "counted": one.counted,
        "few": [_rank(look, one, rank) for rank in one.few[:MOST_NAMED]],
        "few_count": one.few_count,
        "absent": [_absent(look, one, lost) for lost in one.last.absent[:MOST_NAMED]],
        "absent_count": len(one.last.absent),
        "errors": errors(look, one)[:MOST_NAMED],
        "not_mapped": look.names[one.last.id].why,
        "sources": list(one.sources),
    }


def _rank(look: RasLook, one: Watched, rank: int) -> dict[str, Any]:
    member = next((m for m in one.last.members if m.rank == rank), None)
    whose = member.whose if member else None
    return {
        "rank": rank,
        "label": look.names[one.last.id].labels.get(rank),
        "host": whose.host if whose else None,
        "pid": whose.pid if whose else None,
        "before": _total(one.first, rank, one.last) if one.first else None,
        "now": _total(one.last, rank, one.last),
    }


def _total(communicator: Communicator, rank: int, like: Communicator) -> int | None:
    """Its count of the one kind that differs in *like*, else of all kinds."""
    member = next((one for one in communicator.members if one.rank == rank), None)
    if member is None or not member.counts:
        return None
    differing = [kind for kind, counts in like.spread.items() if len(counts) > 1]
    if len(differing) == 1:
        return member.counts.get(differing[0])
    return sum(member.counts.values())


def _absent(look: RasLook, one: Watched, lost: Absent) -> dict[str, Any]:
    return {
        "rank": lost.rank,
        "label": look.names[one.last.id].labels.get(lost.rank),
        "silent": lost.silent,
        "dead": lost.dead,
    }
