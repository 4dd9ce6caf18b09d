"""Which processes belong to which server: by descent alone, so that two never mix."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from app.domain.titles import Engine, Title, is_python, is_tracker, serves

_MAX_DEPTH = 64  # of descent; deeper is no server's doing


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as far as its place is concerned."""

    pid: int
    parent_pid: int
    arguments: Sequence[str]
    title: Title | None  # None: the arguments are those of a command
    session: int = 0


@dataclass(slots=True)
class Tree:
    """A server: its root and all that descend from it and from no nearer root."""

    root: int
    engine: Engine
    gone: bool = False  # the root is a rank whose server is not there
    members: list[int] = field(default_factory=list)  # the root among them


def find_trees(seen: Mapping[int, Seen], is_init: Callable[[int], bool]) -> list[Tree]:
    """The servers among *seen*, by pid of their roots.

    *is_init* tells whether a process adopts what others leave behind.
    """
    trees = {pid: Tree(pid, engine) for pid, engine in _serving(seen)}
    for process in seen.values():
        if process.title is not None and _root_of(seen, process, trees, is_init) is None:
            tree = _without_command(seen, process, is_init)
            trees.setdefault(tree.root, tree)
    for process in seen.values():
        root = _root_of(seen, process, trees, is_init)
        if root is not None:
            trees[root].members.append(process.pid)
    return [trees[root] for root in sorted(trees)]


def _root_of(
    seen: Mapping[int, Seen],
    process: Seen,
    trees: Container[int],
    is_init: Callable[[int], bool],
) -> int | None:
    """The nearest root above, or the process itself.

    The first process of a container adopts what others leave behind. No server puts its children
    into another session, so a child in one was adopted: it is not of that server.
    """
    below = process
    for ancestor in islice(_upwards(seen, process), _MAX_DEPTH):
        if ancestor.pid in trees:
            adopted = below.session != ancestor.session and is_init(ancestor.pid)
            return None if adopted else ancestor.pid
        below = ancestor
    return None


def lineage(seen: Mapping[int, Seen], process: Seen) -> Iterator[int]:
    """The pids from *process* up to the oldest ancestor that is seen."""
    return (ancestor.pid for ancestor in islice(_upwards(seen, process), _MAX_DEPTH))


def is_copy(seen: Mapping[int, Seen], process: Seen) -> bool:
    """Whether it was forked off and has no arguments of its own yet, or never will."""
    above = list(lineage(seen, process))[1:]
    return any(seen[pid].arguments == process.arguments for pid in above)


def _upwards(seen: Mapping[int, Seen], process: Seen | None) -> Iterator[Seen]:
    while process is not None:
        yield process
        process = seen.get(process.parent_pid)


def _serving(seen: Mapping[int, Seen]) -> Iterator[tuple[int, Engine]]:
    """Those whose command line starts a server, and those titled as its frontend."""
    for process in seen.values():
        engine = serves(process.arguments)
        if engine is None and process.title is not None and process.title.role == "server":
            engine = process.title.engine
        if engine is not None and not is_copy(seen, process):
            yield process.pid, engine


def _without_command(
    seen: Mapping[int, Seen], process: Seen, is_init: Callable[[int], bool]
) -> Tree:
    """The tree of a rank that no known command started.

    A program of somebody's own may hold the engine: multiprocessing then keeps its tracker
    beside the ranks. Else the server is gone, and each of its ranks was left to itself.
    """
    assert process.title is not None
    top = process
    for ancestor in islice(_upwards(seen, process), _MAX_DEPTH):
        if ancestor.title is None:
            break
        top = ancestor
    parent = seen.get(top.parent_pid)
    if parent is not None and _holds_engine(seen, parent) and not is_init(parent.pid):
        return Tree(parent.pid, process.title.engine)
    return Tree(top.pid, process.title.engine, gone=True)


def _holds_engine(seen: Mapping[int, Seen], process: Seen) -> bool:
    if not process.arguments or not is_python(process.arguments[0]):
        return False
    return any(
        child.parent_pid == process.pid and is_tracker(child.arguments) for child in seen.values()
    )
