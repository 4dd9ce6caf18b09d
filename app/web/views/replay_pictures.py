"""Pictures of a replay: what their templates draw, in units of the picture."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class AxisTick:
    """A line of the grid at *at*, on both axes the same seconds."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class DensityCell:
    """A square in which several requests lie; *level* is 1 (one) to 4 (most)."""

    x: float
    y: float
    level: int


@dataclass(frozen=True)
class Scatter:
    """Recorded against replayed seconds. Each of *dots*, *slower*, *failed* is the path of all."""

    says: str  # the finding, for those who cannot see it
    told: str  # beside the title
    ticks: Sequence[AxisTick]
    band: str  # path of what is within the noise
    diagonal: str
    dots: str
    few: bool  # dots: large enough to be found
    slower: str
    failed: str
    cells: Sequence[DensityCell]
    cell_width: float
    cell_height: float
    note: str  # below the axis
    without_time: bool  # some were not recorded to their end: they stand in the rail at the right


@dataclass(frozen=True)
class LateBar:
    """Requests that were so late."""

    x: float
    y: float
    height: float
    beyond: bool
    title: str


@dataclass(frozen=True)
class LateBars:
    """How late requests went out; *budget* is what stands at the line."""

    says: str
    bars: Sequence[LateBar]
    budget: str
    half: str
