"""Documents of CUDA coredumps → claims: the kernel that faulted, or that none did."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.claims import Claim, Evidence, Level, ProblemClass, Status
from app.domain.findings import EXCEPTION, Conclusion, Open

MOST_CLAIMS = 4
MOST_EVIDENCE = 6
_NO_EXCEPTION = "gpu-no-exception"
_UPSTREAM = Open(
    "Look one kernel upstream of the one that faulted, at what wrote its addresses and indices.",
    "The faulting kernel is the consumer: it used what another one computed.",
    "None: the dump is read, not the server.",
)


@dataclass(frozen=True, slots=True)
class Dump:
    """The inspected coredump of one rank; *document* is that of ``coredump inspect``."""

    rank: str
    artifact_id: int
    document: Mapping[str, Any]


def coredump_findings(dumps: Sequence[Dump], together: Mapping[str, Any] | None) -> Conclusion:
    """What *dumps* claim; *together* is what several say beside each other, None for one."""
    read = [one for one in dumps if one.document["complete"]]
    faulted = [one for one in read if one.document["exceptions"]]
    claims = [*_exceptions(faulted), *_apart(read, together), *_unread(dumps)]
    return Conclusion(
        claims=tuple(claims),
        ruled_out=tuple(_without(read)) if not faulted else (),
        settles=(_UPSTREAM,) if faulted else (),
        problem_class=ProblemClass.CRASH if faulted else None,
        ranks=len(read),
    )


def _exceptions(faulted: Sequence[Dump]) -> Iterator[Claim]:
    """One claim for each kind of fault, however many ranks had it."""
    alike: dict[tuple[str, str], list[Dump]] = {}
    for one in faulted:
        first = one.document["exceptions"][0]
        kernel = first["kernel"] or first["function"] or "a kernel that is not known"
        alike.setdefault((first["name"], kernel), []).append(one)
    for (name, kernel), ones in list(alike.items())[:MOST_CLAIMS]:
        says = f"{name} in {kernel}, on the GPU of {_ranks(ones)}."
        proof = tuple(_exception_at(one) for one in ones[:MOST_EVIDENCE])
        yield Claim(EXCEPTION, says, Status.ESTABLISHED, proof, Level.BAD)


def _exception_at(one: Dump) -> Evidence:
    first = one.document["exceptions"][0]
    at = f"{one.rank}: GPU {first['device']} SM {first['sm']} pc {first['pc'] or 'unknown'}"
    return Evidence(f"artifact {one.artifact_id}", at, first["name"])


def _apart(read: Sequence[Dump], together: Mapping[str, Any] | None) -> Iterator[Claim]:
    """Ranks in different places, without a fault: one dump of each shows no movement."""
    groups = together["groups"] if together else []
    if together is None or len(groups) < 2 or any(one["faulted"] for one in groups):
        return
    place = {rank: one["place"] for one in groups for rank in one["ranks"]}
    # The smaller groups come last and are what one looks at first.
    order = [rank for one in reversed(groups) for rank in one["ranks"]]
    known = sorted((one for one in read if one.rank in place), key=lambda d: order.index(d.rank))
    proof = tuple(
        Evidence(f"artifact {one.artifact_id}", f"{one.rank}: kernels", place[one.rank])
        for one in known[:MOST_EVIDENCE]
    )
    yield Claim("gpu-places-differ", together["says"], Status.HYPOTHESIS, proof, Level.WARN)


def _unread(dumps: Sequence[Dump]) -> Iterator[Claim]:
    for one in [one for one in dumps if not one.document["complete"]][:MOST_CLAIMS]:
        says = f"The coredump of {one.rank} tells nothing: {one.document['note']}"
        proof = Evidence(f"artifact {one.artifact_id}", "file", one.document["kind"])
        yield Claim("coredump-unreadable", says, Status.UNKNOWN, (proof,))


def _without(read: Sequence[Dump]) -> Iterator[Claim]:
    if read:
        says = f"A fault of a kernel: the coredumps of {_ranks(read)} have no exception."
        proof = tuple(
            Evidence(f"artifact {one.artifact_id}", f"{one.rank}: exceptions", 0)
            for one in read[:MOST_EVIDENCE]
        )
        yield Claim(_NO_EXCEPTION, says, Status.ESTABLISHED, proof)


def _ranks(dumps: Sequence[Dump]) -> str:
    names = [one.rank for one in dumps]
    more = f" and {len(names) - MOST_EVIDENCE} more" if len(names) > MOST_EVIDENCE else ""
    return ", ".join(names[:MOST_EVIDENCE]) + more
