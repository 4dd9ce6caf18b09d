"""The stacks of many ranks as one prefix tree; a node holds the set of ranks as bits of a number.

So a set costs one integer however many ranks there are, and "do all of them pass here" is one
comparison.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.domain.stacks.dump import Frame


@dataclass(slots=True)
class Node:
    """One call that some ranks are in. *ends* are those whose newest call it is."""

    key: str
    frame: Frame | None  # of the first rank that came by; None at the root
    ranks: int = 0
    ends: int = 0
    children: dict[str, "Node"] = field(default_factory=dict)


def prefix_tree(stacks: Sequence[tuple[Sequence[str], Sequence[Frame]]]) -> Node:
    """The tree of *stacks*, each keys and frames root first; rank *i* is bit *i*."""
    root = Node("", None)
    for number, (path, frames) in enumerate(stacks):
        bit, node = 1 << number, root
        node.ranks |= bit
        for key, frame in zip(path, frames, strict=True):
            child = node.children.get(key)
            if child is None:
                child = node.children[key] = Node(key, frame)
            child.ranks |= bit
            node = child
        node.ends |= bit
    return root


def where_they_part(root: Node) -> Node | None:
    """The deepest call that all ranks are in, if they part after it; None when they never do.

    Ranks that end in a call part there from those that go on. The root itself stands for stacks
    that have nothing in common.
    """
    node = root
    while True:
        going_on = node.ranks & ~node.ends
        if len(node.children) != 1 or node.ends:
            return node if going_on and (len(node.children) > 1 or node.ends) else None
        node = next(iter(node.children.values()))


def members(ranks: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while ranks:
        lowest = ranks & -ranks
        yield lowest.bit_length() - 1
        ranks ^= lowest
