"""Where ranks part: the stacks of their classes as a tree of calls, small enough for a page."""

from collections.abc import Sequence

from markupsafe import escape

from app.domain.stacks.dump import Frame
from app.domain.stacks.frames import coarse_key
from app.domain.stacks.told import MOST_FRAMES
from app.domain.stacks.tree import Node, members, prefix_tree
from app.domain.stacks.wording import spans
from app.web.formats import cut
from app.web.views.comparison import ComparisonKept, DivergenceKept, GroupKept
from app.web.views.found import in_order
from app.web.views.ranks import NOT_READ, USUAL, Call, Cell, RankColumn, Shape, Tree

TREE_BYTES = 30_000
CALL_BYTES = 260  # of the markup around one call
CELL_BYTES = 22
OPEN_RUN = 4  # calls in a row without a fork that are all shown; of longer runs the ends
MOST_CELLS = 64
LONGEST_NAME, LONGEST_PLACE, LONGEST_RANKS = 120, 80, 120


def tree_of(
    comparison: ComparisonKept,
    groups: Sequence[GroupKept],
    columns: Sequence[RankColumn],
    shape: Shape = USUAL,
    *,
    room: int = TREE_BYTES,
    apart_first: bool = False,
) -> Tree:
    """The tree of *groups*, a cell for each of *columns*; their order is that of the classes.

    What takes more than *room* bytes of HTML is left out. Calls of most ranks come first, or
    with *apart_first* those of outliers.
    """
    stacks = _stacks(groups, comparison.divergence)
    key = _key_with_line if shape.by_line else coarse_key
    root = prefix_tree([([key(one) for one in frames], frames) for frames in stacks])
    outliers = set(comparison.outliers)
    drawing = _Drawing(groups, columns, outliers, shape, room=room, apart_first=apart_first)
    calls = drawing.below(root)
    return Tree(calls, drawing.left_out, parts=_parts(root), shape=shape)


def _key_with_line(frame: Frame) -> str:
    return f"{coarse_key(frame)}:{frame.line}"


def _stacks(groups: Sequence[GroupKept], shared: DivergenceKept | None) -> list[list[Frame]]:
    """Root first. Where one was cut at its root, all begin with the last call that they share."""
    stacks = [[_frame(told) for told in reversed(group.frames)] for group in groups]
    cut_short = any(len(group.frames) >= MOST_FRAMES for group in groups)
    if not (cut_short and shared and shared.frame):
        return stacks
    here = {rank for branch in shared.branches for rank in branch.ranks}
    fork = _frame(shared.told())
    return [
        _from(fork, frames) if here.issuperset(group.ranks) else frames
        for group, frames in zip(groups, stacks, strict=True)
    ]


def _from(fork: Frame, frames: list[Frame]) -> list[Frame]:
    keys = [coarse_key(frame) for frame in frames]
    key = coarse_key(fork)
    return frames[keys.index(key) :] if key in keys else [fork, *frames]


def _frame(told: str) -> Frame:
    function, _, where = told.rpartition(" (")
    file, _, line = where.removesuffix(")").rpartition(":")
    if file and line.isdecimal():
        return Frame(function, file, int(line), native=False)
    return Frame(function or told, where.removesuffix(")"), None, native=False)


def _parts(node: Node) -> bool:
    while len(node.children) == 1 and not node.ends:
        node = next(iter(node.children.values()))
    return bool(node.children)


class _Drawing:
    """Draws calls while there is room on the page."""

    def __init__(
        self,
        groups: Sequence[GroupKept],
        columns: Sequence[RankColumn],
        outliers: set[str],
        shape: Shape,
        *,
        room: int,
        apart_first: bool,
    ) -> None:
        self.groups, self.columns, self.outliers = groups, columns, outliers
        self.folded, self.apart_first = shape.folded, apart_first
        self.room, self.left_out = room, 0
        self._known: dict[int, list[str]] = {}
        self._spans: dict[int, str] = {}

    def below(self, node: Node) -> list[Call]:
        """The calls that are made from *node*, in their order."""
        ordered = sorted(node.children.values(), key=self._order)
        return [call for child in ordered for call in self._run(child)]

    def _order(self, node: Node) -> tuple[bool, int]:
        ranks = self._ranks(node.ranks)
        return self.apart_first and not self.outliers.issuperset(ranks), -len(ranks)

    def _run(self, node: Node) -> list[Call]:
        """*node* and all that follows up to a fork, one in the other."""
        run = [node]
        while len(node.children) == 1 and not node.ends:
            node = next(iter(node.children.values()))
            run.append(node)
        shown = self._shown(run)
        if not shown:
            self.left_out += len(run)
            return []
        calls = self.below(run[-1])
        for nodes in reversed(shown):
            calls = [self._call(nodes, calls)]
        return calls

    def _shown(self, run: Sequence[Node]) -> Sequence[Sequence[Node]]:
        """*run* as it is asked for, folded where only that has room, else nothing."""
        open_run = [[node] for node in run]
        for shown in ([] if self.folded else [open_run]) + [_folded(run)]:
            if (size := self._size(shown)) <= self.room:
                self.room -= size
                return shown
        return ()

    def _size(self, shown: Sequence[Sequence[Node]]) -> int:
        """The bytes of HTML that *shown* takes."""
        around = len(shown) * (CALL_BYTES + CELL_BYTES * len(self.columns))
        return around + sum(len(escape(_told(one))) + 10 for nodes in shown for one in nodes)

    def _call(self, nodes: Sequence[Node], calls: Sequence[Call]) -> Call:
        node = nodes[-1]
        ranks = self._ranks(node.ranks)
        frame = node.frame
        return Call(
            name=cut(frame.function, LONGEST_NAME) if frame else "",
            place=cut(frame.where, LONGEST_PLACE) if frame else "",
            folded=[_told(one) for one in nodes] if len(nodes) > 1 else (),
            cells=[self._cell(column, node.ranks) for column in self.columns[:MOST_CELLS]],
            ranks=self._named(node.ranks),
            count=len(ranks),
            fork=len(node.children) + bool(node.ends) > 1,
            outlier=all(rank in self.outliers for rank in ranks),
            ends=self._named(node.ends) if node.children else "",
            calls=calls,
        )

    def _ranks(self, bits: int) -> list[str]:
        """In their order; found once for the many calls that the same ranks are in."""
        if bits not in self._known:
            found = (rank for number in members(bits) for rank in self.groups[number].ranks)
            self._known[bits] = sorted(found, key=in_order)
        return self._known[bits]

    def _named(self, bits: int) -> str:
        if bits not in self._spans:
            self._spans[bits] = cut(spans(self._ranks(bits)), LONGEST_RANKS)
        return self._spans[bits]

    def _cell(self, column: RankColumn, bits: int) -> Cell:
        if column.group is None:
            return Cell(NOT_READ, "void")
        if not bits >> column.group & 1:
            return Cell("·", "none")
        return Cell(column.letter, "b" if column.outlier else "")


def _folded(run: Sequence[Node]) -> list[Sequence[Node]]:
    """*run* as what is shown: calls alone, and in a long one those between its ends as one."""
    if len(run) <= OPEN_RUN:
        return [[node] for node in run]
    if run[-1].children:
        return [run[:-1], run[-1:]]
    return [run[:1], run[1:-2], run[-2:-1], run[-1:]]


def _told(node: Node) -> str:
    frame = node.frame
    return cut(f"{frame.function} ({frame.where})", LONGEST_NAME) if frame else ""
