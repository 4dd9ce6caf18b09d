"""Builds what a page tells of compared ranks, small however many ranks there are."""

from collections.abc import Callable, Sequence
from itertools import groupby

from app.domain.counting import counted
from app.domain.stacks.frames import last_name
from app.domain.stacks.wording import spans
from app.web.formats import cut, visible
from app.web.icicles import MOST_CLASSES, icicle_of
from app.web.parting import tree_of
from app.web.reading_ranks import readings
from app.web.views.comparison import ComparisonKept, GroupKept, MissingKept, beyond_headline
from app.web.views.found import in_order
from app.web.views.ranks import (
    NOT_READ,
    USUAL,
    ClassTold,
    Press,
    RankColumn,
    RanksTold,
    Shape,
    Tree,
    UnreadTold,
)

OPEN_COLUMNS = 16  # ranks with a column each; of more, equal neighbours share one
MOST_COLUMNS = 64
MOST_UNREAD = 8
MOST_SETTLES = 8
LONGEST_COLUMN = 40
LONGEST = 160  # characters of a name or of ranks
LONGEST_REASON = 400
LONGEST_SAYS = 2_000
_MOVED = {True: "≠ moved", False: "= same", None: "? not known"}
NO_TREE = Tree((), 0, parts=False)
BEYOND = "+"  # the letter of all classes after Z


def ranks_told(
    comparison: ComparisonKept,
    presses: Sequence[Press],
    stack_of: Callable[[str], str | None],
    shape: Shape = USUAL,
) -> RanksTold:
    """What *comparison* says; *stack_of* links to the raw stack of a rank, where it is shown."""
    groups = _lettered(comparison)
    columns = _columns(comparison, groups)
    shown = _most_telling(columns)
    tree = tree_of(comparison, groups[:MOST_CLASSES], shown, shape) if groups else NO_TREE
    classes = [_class(n, one, comparison, stack_of) for n, one in enumerate(groups[:MOST_CLASSES])]
    unread = _unread(comparison.missing)
    return RanksTold(
        verdict=comparison.verdict,
        says=visible(cut(comparison.says, LONGEST_SAYS)),
        beyond_title=visible(cut(beyond_headline(comparison), LONGEST_SAYS)),
        total=comparison.ranks,
        captured=comparison.captured,
        samples=comparison.samples,
        columns=shown,
        columns_left_out=sum(one.count for one in columns) - sum(one.count for one in shown),
        classes=sorted(classes, key=lambda one: not (one.outlier or one.apart)),
        classes_left_out=max(len(groups) - MOST_CLASSES, 0),
        unread=unread[:MOST_UNREAD],
        unread_left_out=len(unread) - len(unread[:MOST_UNREAD]),
        tree=tree,
        icicle=icicle_of(comparison, groups, shape),
        readings=readings(comparison),
        settles=[cut(one, LONGEST_REASON) for one in comparison.settles[:MOST_SETTLES]],
        presses=presses,
    )


def _lettered(comparison: ComparisonKept) -> list[GroupKept]:
    """The classes in the order of their letters: the largest, what stands out, the rest."""
    outliers = set(comparison.outliers)
    usual = [one for one in comparison.groups if not outliers.issuperset(one.ranks)]
    apart = [one for one in comparison.groups if outliers.issuperset(one.ranks)]
    return [*usual[:1], *apart, *usual[1:]]


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < MOST_CLASSES else BEYOND


def _columns(comparison: ComparisonKept, groups: Sequence[GroupKept]) -> list[RankColumn]:
    outliers = set(comparison.outliers)
    pids = {one.label: one.pid for one in comparison.processes}
    kinds = {rank: number for number, group in enumerate(groups) for rank in group.ranks}
    ranks = sorted({*kinds, *(one.rank for one in comparison.missing)}, key=in_order)
    columns = [
        RankColumn(
            name=cut(rank, LONGEST_COLUMN),
            count=1,
            group=kinds.get(rank),
            letter=_letter(kinds[rank]) if rank in kinds else NOT_READ,
            outlier=rank in outliers,
            primitive=_primitive(groups[kinds[rank]]) if rank in kinds else "",
            moved=_MOVED[comparison.moved.get(rank)],
            state=_state(comparison.states.get(rank)),
            pid=pids.get(rank),
        )
        for rank in ranks
    ]
    return columns if len(columns) <= OPEN_COLUMNS else _shared(columns)


def _shared(columns: Sequence[RankColumn]) -> list[RankColumn]:
    """Neighbours that do not differ as one column each."""
    shared = []
    for _, run in groupby(columns, key=lambda c: (c.group, c.outlier, c.moved, c.state)):
        alike = list(run)
        first = alike[0]
        shared.append(
            RankColumn(
                name=cut(spans([one.name for one in alike]), LONGEST_COLUMN),
                count=len(alike),
                group=first.group,
                letter=first.letter,
                outlier=first.outlier,
                primitive=first.primitive,
                moved=first.moved,
                state=first.state,
                pid=first.pid if len(alike) == 1 else None,
            )
        )
    return shared


def _most_telling(columns: Sequence[RankColumn]) -> list[RankColumn]:
    """As many as fit, outliers before others, in the order of ranks."""
    numbered = sorted(enumerate(columns), key=lambda one: (not one[1].outlier, one[0]))
    return [column for _, column in sorted(numbered[:MOST_COLUMNS], key=lambda one: one[0])]


def _primitive(group: GroupKept) -> str:
    if group.primitive == "collective" and group.operation:
        return cut(group.operation, 40)
    return cut(group.primitive, 40)


def _state(letter: str | None) -> str | None:
    return letter[:2] if letter else None


def _class(
    number: int,
    group: GroupKept,
    comparison: ComparisonKept,
    stack_of: Callable[[str], str | None],
) -> ClassTold:
    level, moved = _movement(group, comparison)
    apart = [rank for rank in group.ranks if rank in comparison.outliers]
    whole = len(apart) == len(group.ranks)
    return ClassTold(
        letter=_letter(number),
        outlier=whole,
        apart="" if whole else cut(spans(apart), LONGEST),
        ranks=cut(spans(group.ranks), LONGEST),
        count=len(group.ranks),
        top=cut(group.top or "no call that is known", LONGEST),
        where=cut(group.where or "", LONGEST),
        waits=_waits(group),
        level=level,
        moved=moved,
        stack=stack_of(group.ranks[0]) if group.ranks else None,
    )


def _movement(group: GroupKept, comparison: ComparisonKept) -> tuple[str, str]:
    samples, moved = comparison.samples, group.moved
    if moved:
        return "quiet", f"moved, {counted(samples, 'sample')}"
    if moved is None:
        return "unknown", "unknown: one sample" if samples < 2 else "unknown"
    return "bad" if comparison.stuck else "quiet", f"not moved, {counted(samples, 'sample')}"


def _waits(group: GroupKept) -> str:
    if group.primitive in ("Python code", "C code"):
        return f"nothing: it runs {group.primitive}"
    if group.primitive == "unknown":
        return "not known"
    told = group.primitive
    if group.operation:
        told = f"{told}: {group.operation}" if told != group.operation else told
    asked = " ← ".join(last_name(one.partition(" (")[0]) for one in group.asked_by[:2])
    return cut(f"{told}, asked for by {asked}" if asked else told, LONGEST)


def _unread(missing: Sequence[MissingKept]) -> list[UnreadTold]:
    alike: dict[tuple[str, str | None, str | None], list[str]] = {}
    for one in missing:
        partly = "Read in part, so not compared: " if one.partial else ""
        key = (f"{partly}{cut(one.reason, LONGEST_REASON)}", one.fix, one.command)
        alike.setdefault(key, []).append(one.rank)
    return [
        UnreadTold(cut(spans(sorted(ranks, key=in_order)), LONGEST), *_short(key))
        for key, ranks in alike.items()
    ]


def _short(key: tuple[str, str | None, str | None]) -> tuple[str, str | None, str | None]:
    reason, fix, command = key
    return (
        reason,
        cut(fix, LONGEST_REASON) if fix else None,
        cut(command, LONGEST_REASON) if command else None,
    )
