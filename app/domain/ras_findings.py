"""What NCCL's RAS says → claims about an incident, each no stronger than the answers allow.

Who is behind is where to look first, not who is to blame: the rank may itself wait for a disk, a
lock or another communicator.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.claims import Claim, Evidence, Level, ProblemClass, Status
from app.domain.findings import STANDSTILL, Conclusion, Open

Document = Mapping[str, Any]  # as ``domain.ras.told`` writes it

MOST_CLAIMS = 4
WEDGED_SECONDS = 5.0  # between two answers, as between two samples
_APART = ("behind", "ahead", "different collectives", "uneven")
_STACKS = Open(
    "Stacks of the ranks that are behind, twice: where they are instead.",
    "NCCL tells who is behind, not why.",
    "py-spy stops each process for less than a second.",
    rung="stacks",
)
_AGAIN = Open(
    "NCCL RAS again, 10 s later: counts that grow are slow, counts that do not are stuck.",
    "Ranks are counted one after the other while they go on.",
    "Read-only.",
    rung="nccl ras",
)


def ras_findings(document: Document) -> Conclusion:
    """What *document* claims; its sources are numbers of artifacts."""
    shown: Sequence[Document] = document["shown"]
    stuck = document["stuck"] is True
    claims = [*_lost(document), *_apart(document), *_failed(shown), *_rest(document)]
    return Conclusion(
        claims=tuple(claims),
        ruled_out=tuple(_ruled_out(document)),
        settles=tuple(_open(document)),
        problem_class=ProblemClass.HANG if stuck else None,
        wedged=any(_long_enough(one) for one in shown),
        ranks=document["ranks"],
    )


def _lost(document: Document) -> Iterator[Claim]:
    """Processes that NCCL gave up, and such as did not answer."""
    for key, verb, level in (
        ("dead", "gave up", Level.BAD),
        ("silent", "has no answer of", Level.WARN),
    ):
        many = document[f"{key}_count"]
        if not many:
            continue
        named = [
            f"{one['label'] or 'a process'} (pid {one['pid'] or 'unknown'} on {one['host'] or '?'})"
            for one in document[key][:MOST_CLAIMS]
        ]
        more = f" and {many - len(named)} more" if named and many > len(named) else ""
        which = f": {', '.join(named)}{more}" if named else ""
        says = f"NCCL {verb} {many:,} process{'es' if many != 1 else ''}{which}."
        proof = Evidence(_last(document), f"{key} processes", many)
        yield Claim(f"nccl-rank-{key}", says, Status.ESTABLISHED, (proof,), level)


def _apart(document: Document) -> Iterator[Claim]:
    """Communicators whose ranks launched different numbers or kinds of collectives."""
    in_text = any(one["form"] == "text" for one in document["readings"])
    apart = [one for one in document["shown"] if one["standing"] in _APART]
    for one in apart[:MOST_CLAIMS]:
        name = "nccl-rank-behind" if one["standing"] == "behind" else "nccl-counts-differ"
        status, level = _sure(one, in_text=in_text)
        yield Claim(name, one["says"], status, tuple(_counts(one)), level)


def _sure(one: Document, *, in_text: bool) -> tuple[Status, Level]:
    """One answer is no snapshot: a difference in it may be gone a moment later.

    Text tells only counts that differ, so others may have grown; and a rank may run ahead.
    """
    if one["stuck"] is None:
        return Status.UNKNOWN, Level.WARN
    if not one["stuck"]:
        return Status.ESTABLISHED, Level.NOTE
    sure = one["standing"] == "behind" and not in_text
    return Status.ESTABLISHED if sure else Status.SUPPORTED, Level.BAD


def _long_enough(one: Document) -> bool:
    return bool(one["stuck"]) and (one["seconds"] or 0.0) >= WEDGED_SECONDS


def _counts(one: Document) -> Iterator[Evidence]:
    at = f"communicator {one['communicator']}"
    for number, source in enumerate(one["sources"]):
        key = "before" if number < len(one["sources"]) - 1 else "now"
        named = [f"{few['label'] or 'rank ' + str(few['rank'])}: {few[key]}" for few in one["few"]]
        others = f"lowest {one['low']}, highest {one['high']}" if key == "now" else ""
        value = ", ".join([*named[:MOST_CLAIMS], others] if others else named[:MOST_CLAIMS])
        yield Evidence(f"artifact {source}", at, value or None)


def _failed(shown: Sequence[Document]) -> Iterator[Claim]:
    for one in [one for one in shown if one["errors"]][:MOST_CLAIMS]:
        proof = Evidence(f"artifact {one['sources'][-1]}", f"communicator {one['communicator']}")
        says = f"{'; '.join(one['errors'][:MOST_CLAIMS])}."
        yield Claim("nccl-error", says, Status.ESTABLISHED, (proof,), Level.BAD)


def _rest(document: Document) -> Iterator[Claim]:
    """What is told where no rank keeps apart: that it moves, or that nothing shows."""
    if not document["readings"]:
        files = [Evidence(f"artifact {one['source']}", "file") for one in document["unread"]]
        yield Claim("nccl-unreadable", document["says"], Status.UNKNOWN, tuple(files[:MOST_CLAIMS]))
        return
    if any(one["standing"] in _APART for one in document["shown"]):
        return
    proof = (Evidence(_last(document), "communicators", document["communicators"]),)
    if document["stuck"] is False:
        yield Claim("nccl-moves", document["says"], Status.ESTABLISHED, proof)
    elif not (document["dead_count"] or document["silent_count"]):
        yield Claim("nccl-nothing-seen", document["says"], Status.UNKNOWN, proof)


def _ruled_out(document: Document) -> Iterator[Claim]:
    """Only that each process launched more rules a standstill out."""
    if document["all_grew"]:
        says = "A standstill: every process launched more collectives between two answers of NCCL."
        proof = tuple(
            Evidence(f"artifact {one['source']}", "collective counts")
            for one in document["readings"][-2:]
        )
        yield Claim(STANDSTILL, says, Status.ESTABLISHED, proof)


def _open(document: Document) -> Iterator[Open]:
    apart = [one for one in document["shown"] if one["standing"] in _APART]
    if any(one["stuck"] for one in apart) or document["dead_count"]:
        yield _STACKS
    if any(one["stuck"] is None for one in apart) or (
        document["stuck"] is None and len(document["readings"]) < 2
    ):
        yield _AGAIN


def _last(document: Document) -> str:
    return f"artifact {document['readings'][-1]['source']}"
