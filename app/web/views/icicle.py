"""The icicle of compared ranks: what its template draws, in pixels and percent of its width."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class IcicleBar:
    """A call, as wide as its ranks; *ranks* is empty where they are those of the call above."""

    left: str
    top: int
    width: str
    height: int
    style: str  # "outlier", "fork", "void", "left-out" or ""
    name: str  # empty where there is no room for a word
    ranks: str
    title: str


@dataclass(frozen=True)
class Icicle:
    """The calls of all ranks. *left_out* calls did not fit on the page."""

    bars: Sequence[IcicleBar]
    height: int
    says: str
    left_out: int
