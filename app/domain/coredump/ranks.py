"""The dumps of one incident beside each other: which rank was somewhere else."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

IDLE = "no kernel"
_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks whose GPUs were in the same place, in words."""

    ranks: tuple[str, ...]
    place: str
    waits: bool  # all of its kernels are collectives: they wait for peers
    faulted: bool


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where the GPU of one rank was: a place in words, and what kind of place it is."""

    place: str
    waits: bool
    faulted: bool


@dataclass(frozen=True, slots=True)
class RankComparison:
    """The largest group first. *missing* has each rank without a dump, and why."""

    groups: tuple[RankGroup, ...]
    missing: Mapping[str, str]
    says: str


def compare_places(ranks: Mapping[str, RankPlace | str]) -> RankComparison:
    """What the places of *ranks* say together; a text instead of a place is why there is none.

    A rank without a dump is never counted with others, and never accused.
    """
    places: dict[RankPlace, list[str]] = {}
    missing: dict[str, str] = {}
    for rank, place in sorted(ranks.items(), key=lambda one: _natural(one[0])):
        if isinstance(place, str):
            missing[rank] = place
        else:
            places.setdefault(place, []).append(rank)
    groups = [
        RankGroup(tuple(ones), place.place, waits=place.waits, faulted=place.faulted)
        for place, ones in places.items()
    ]
    groups.sort(key=lambda group: -len(group.ranks))
    return RankComparison(tuple(groups), missing, _says(groups, missing, len(ranks)))


def ranks_text(ranks: Sequence[str]) -> str:
    """``ranks 0–6, 8`` or ``rank TP7``: runs of numbers are written as one."""
    parts = []
    for _, run in groupby(enumerate(ranks), key=lambda one: _step(*one)):
        names = [name for _, name in run]
        parts += names if len(names) < 3 else [f"{names[0]}–{names[-1]}"]
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(parts)}"


def faulted_in(exception: str, kernel: str | None) -> RankPlace:
    """The place of a rank with an exception; *kernel* None: not known."""
    place = f"{exception} in {kernel or 'a kernel that is not known'}"
    return RankPlace(place, waits=False, faulted=True)


def busy_in(kernels: Sequence[tuple[str, bool]]) -> RankPlace:
    """The place of a rank with *kernels* on its SMs: each its name, and whether it is a collective.

    A rank that is in collectives only waits for its peers.
    """
    names = sorted({name for name, _ in kernels})
    waits = bool(kernels) and all(collective for _, collective in kernels)
    return RankPlace(" and ".join(names) or IDLE, waits=waits, faulted=False)


def _says(groups: list[RankGroup], missing: Mapping[str, str], count: int) -> str:
    if not groups:
        return "No dump of any rank could be read."
    parts = [_group(group, first=not at) for at, group in enumerate(groups)]
    sentences = [", ".join(parts) + "."]
    if missing:
        sentences.append(f"{count - len(missing)} of {count} ranks: {_absent(missing)}.")
    sentences.append(_meaning(groups))
    return " ".join(sentences)


def _group(group: RankGroup, *, first: bool) -> str:
    ranks = ranks_text(group.ranks)
    if group.faulted or group.place == IDLE:
        said = f"{ranks}: {group.place}"
        return said[0].upper() + said[1:] if first else said
    return (
        f"All SMs with work of {ranks} in {group.place}" if first else f"{ranks} in {group.place}"
    )


def _absent(missing: Mapping[str, str]) -> str:
    return f"no dump of {ranks_text(tuple(missing))}"


def _meaning(groups: list[RankGroup]) -> str:
    """What follows, and what does not; a fault before a wait, as it may be its cause."""
    faulted = [group for group in groups if group.faulted]
    if faulted:
        others = "; the others may only wait for it" if len(groups) > 1 else ""
        return f"Begin with {ranks_text(faulted[0].ranks)}: an exception was raised there{others}."
    if len(groups) == 1:
        if groups[0].waits:
            return "All wait in the same place: the dumps do not tell for whom."
        return "The dumps do not differ."
    waiting = [group for group in groups if group.waits]
    if len(waiting) == len(groups):
        return "They are in different collectives: one side has run ahead, or took another path."
    if len(waiting) == 1:
        rest = [rank for group in groups if not group.waits for rank in group.ranks]
        ordered = sorted(rest, key=_natural)
        return (
            f"Not in that collective: {ranks_text(ordered)}."
            " One dump of each does not tell which of them moves."
        )
    return "One dump of each does not tell which of them moves."


def _step(at: int, name: str) -> tuple[str, int | None]:
    """The same for neighbours in a run of numbered names."""
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2]) - at) if found and len(found[2]) < 7 else (name, None)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sorts TP2 before TP10."""
    parts = re.split(r"(\d{1,9})", name)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]
