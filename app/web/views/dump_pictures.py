"""Pictures of a dump: what their template draws, in pixels and percent of the width."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PictureBar:
    """Requests of one length or time, standing on the axis."""

    x: str
    width: str
    top: float
    height: float
    style: str  # "warn" for unfinished ones, "void" where the figure is not known, or ""
    title: str


@dataclass(frozen=True)
class Tick:
    """A word below the axis. *anchor* is the side of the word that stands at *x*."""

    x: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Picture:
    """Bars over an axis. *most* stands at the top: what the highest bar counts."""

    title: str
    figures: str  # beside the title
    says: str  # the finding, for those who cannot see it
    bars: Sequence[PictureBar]
    ticks: Sequence[Tick]
    most: str
    written: str | None  # where a line stands: the moment of the dump
    foot: int  # where the axis is; ticks stand below it
    height: int
