"""Ranks side by side: their classes, where they part, and how to read it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.ladder import Rung
from app.web.views.icicle import Icicle

NOT_READ = "?"


@dataclass(frozen=True)
class RankColumn:
    """One rank, or neighbours that do not differ where there are many. *group* None: not read."""

    name: str
    count: int
    group: int | None  # place of its class
    letter: str
    outlier: bool
    primitive: str
    moved: str
    state: str | None  # of the process; None: not told
    pid: int | None

    @property
    def read(self) -> bool:
        return self.group is not None

    @property
    def style(self) -> str:
        """The class of its cells: framed where it is an outlier, hatched where not read."""
        if self.outlier:
            return "ranks--outlier"
        return "" if self.read else "ranks--void"


@dataclass(frozen=True)
class ClassTold:
    """Ranks whose stacks end alike."""

    letter: str
    outlier: bool
    apart: str  # those of its ranks that stand out, where it is not all of them
    ranks: str
    count: int
    top: str
    where: str
    waits: str
    level: str  # of the mark beside *moved*
    moved: str
    stack: str | None  # a link to the stack of its first rank; None: not shown here


@dataclass(frozen=True)
class UnreadTold:
    """Ranks that were not read for one reason."""

    ranks: str
    reason: str
    fix: str | None
    command: str | None


@dataclass(frozen=True)
class Cell:
    """Whether a rank is in a call: its class, "·" where it is not, "?" where nobody knows."""

    letter: str
    style: str  # "b", "none", "void" or ""


@dataclass(frozen=True)
class Call:
    """A call that some ranks are in, or several without a fork between them (*folded*)."""

    name: str
    place: str
    folded: Sequence[str]
    cells: Sequence[Cell]
    ranks: str
    count: int
    fork: bool
    outlier: bool
    ends: str  # ranks that go no further where others do
    calls: Sequence["Call"]


@dataclass(frozen=True)
class Shape:
    """How calls are drawn: long runs as one, and a call as the same whichever line it is at."""

    folded: bool = True
    by_line: bool = False

    @property
    def query(self) -> dict[str, str]:
        """As a link asks for it; what is usual is left out."""
        return ({} if self.folded else {"fold": "none"}) | ({"by": "line"} if self.by_line else {})


USUAL = Shape()


@dataclass(frozen=True)
class Tree:
    """The stacks of all classes as one tree of calls. *left_out* did not fit on the page."""

    calls: Sequence[Call]
    left_out: int
    parts: bool  # whether they part at all
    shape: Shape = USUAL


@dataclass(frozen=True)
class Reading:
    """One thing that the stacks say, and how well it is known."""

    proof: str
    says: str


@dataclass(frozen=True)
class Press:
    """A button that takes more: a rung of the ladder, of *process_id* or of all ranks."""

    rung: Rung
    label: str
    server: str
    process_id: str


@dataclass(frozen=True)
class RanksTold:
    """What the stacks of all ranks say together."""

    verdict: str
    says: str
    beyond_title: str  # what it says after the sentence that is the page's title
    total: int
    captured: int
    samples: int
    columns: Sequence[RankColumn]
    columns_left_out: int
    classes: Sequence[ClassTold]
    classes_left_out: int
    unread: Sequence[UnreadTold]
    unread_left_out: int
    tree: Tree
    icicle: Icicle | None  # None: they do not part, so all would be as wide
    readings: Sequence[Reading]
    settles: Sequence[str]
    presses: Sequence[Press]

    @property
    def folded(self) -> bool:
        """Whether a column may be several ranks."""
        return any(column.count > 1 for column in self.columns)

    @property
    def states_told(self) -> bool:
        return any(column.state for column in self.columns)

    @property
    def pids_told(self) -> bool:
        return any(column.pid for column in self.columns)
