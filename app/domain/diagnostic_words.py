"""How a diagnostic ended, in one or two sentences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain.counting import counted

NAMES: Mapping[str, str] = {
    "stacks": "Stacks",
    "native stacks": "Native stacks",
    "coredump": "CUDA coredumps",
    "nccl ras": "NCCL RAS",
    "host facts": "Host facts",
    "cpu profile": "CPU profile",
    "flight recorder": "Flight recorder",
}


@dataclass(frozen=True, slots=True)
class Came:
    """What came of one process at one moment."""

    process: str  # any text that is equal for equal processes
    state: str  # "done", "here-already", "refused", or the state of a coredump
    says: str


def summed_up(kind: str, hosts: Sequence[str], came: Sequence[Came]) -> str:
    """``Stacks of 8 processes on gpu-14. 1 was refused: …``"""
    where = ", ".join(hosts)
    if kind == "server dumps":
        return " ".join(_copied(where, came))
    name = NAMES.get(kind, kind)
    taken = {one.process for one in came if one.state not in ("refused", "no-file", "timed-out")}
    missed = [one for one in came if one.state in ("refused", "no-file", "timed-out")]
    without = {one.process: one for one in missed if one.process not in taken}
    head = f"{name} of {_count(len(taken))} on {where}." if taken else f"{name} on {where}: none."
    return " ".join((head, *_missed(without)))


def _copied(where: str, came: Sequence[Came]) -> Iterator[str]:
    """Of dumps, each is one file, and one that is here already is not copied again."""
    copied, known, refused = (
        [one for one in came if one.state == state] for state in ("done", "here-already", "refused")
    )
    yield f"{counted(len(copied), 'dump') if copied else 'No dump'} copied from {where}."
    if known:
        yield f"{len(known)} {'was' if len(known) == 1 else 'were'} here already."
    if refused:
        yield f"{len(refused)} refused: {refused[0].says}"


def _missed(without: Mapping[str, Came]) -> Sequence[str]:
    if not without:
        return ()
    first = next(iter(without.values())).says
    return (f"Not of {_count(len(without))}: {first}",)


def _count(number: int) -> str:
    return counted(number, "process", "processes")
