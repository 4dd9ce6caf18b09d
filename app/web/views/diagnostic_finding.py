"""What a diagnostic found, in one line: the title of its page."""

from collections.abc import Sequence

from app.domain.counting import counted
from app.domain.ladder import rung_of
from app.domain.timeline import STEP_NAMES
from app.protocol.messages import Fact
from app.store.tables import Diagnostic, DiagnosticItem
from app.web.formats import size, visible
from app.web.views.comparison import ComparisonKept, comparison_in, headline
from app.web.views.coredump_card import dumps_in, inspected_in
from app.web.views.found import GROWING, STACKS, Dump, process_of, told_by_hosts, who
from app.web.views.ras import headline as ras_headline
from app.web.views.ras import ras_in

UNFINISHED = ("queued", "running")
LONGEST_REASON = 90  # characters of a refusal
LONGEST_COMPARED = 240
_BEGIN = frozenset(("A", "An", "Another", "It", "Its", "No", "Not", "Nothing", "The", "This"))


def finding(row: Diagnostic, items: Sequence[DiagnosticItem]) -> str:
    """The page's title: "7 of 8 ranks read; TP7: another tracer holds it".

    While more may come it says only that, as a title does not change under the reader's eyes.
    """
    if row.state in UNFINISHED:
        return f"{STEP_NAMES.get(f'Diagnose {row.kind}', row.kind.capitalize())}, not finished yet"
    return so_far(row, items)


def so_far(row: Diagnostic, items: Sequence[DiagnosticItem]) -> str:
    """What has come until now."""
    if comparison := _compared(row):
        told = headline(comparison)
    elif row.kind in STACKS:
        told = _stacks_found(row, items)
    elif row.kind == "coredump":
        told = _coredumps_found(row, items)
    elif ras := ras_in(row.answer):
        told = ras_headline(ras)
    elif row.kind == "server dumps" and items:
        told = _dumps_copied(items)
    else:
        told = _files_found(row, items)
    return visible(told)


def _compared(row: Diagnostic) -> ComparisonKept | None:
    """What the stacks say together; None where there is nothing to be said of any rank."""
    comparison = comparison_in(row.answer) if row.kind in STACKS else None
    return comparison if comparison and comparison.ranks else None


def asked_of(row: Diagnostic, items: Sequence[DiagnosticItem]) -> int:
    """How many processes were asked, those included that nothing came of yet."""
    planned = sum(len(one.get("process_ids") or ()) for one in row.hosts)
    return max(planned, len({process_of(item) for item in items}))


def _stacks_found(row: Diagnostic, items: Sequence[DiagnosticItem]) -> str:
    read = {process_of(item) for item in items if item.state == "done"}
    samples = len({item.sample for item in items if item.state == "done"})
    asked = asked_of(row, items)
    if not items:
        return f"{row.kind.capitalize()}: {_nothing(row)}"
    told = f"{len(read)} of {counted(asked, 'rank')} read"
    if samples:
        told += f", {counted(samples, 'sample')}"
    if row.state in UNFINISHED:
        return f"{told} so far"
    lost = [item for item in items if item.state == "refused" and process_of(item) not in read]
    return f"{told}{_why(lost)}"


def _coredumps_found(row: Diagnostic, items: Sequence[DiagnosticItem]) -> str:
    if not items:
        return f"Coredump: {_nothing(row)}"
    if len(items) == 1:
        dump = Dump(who(items[0]), items[0])
        if (read := inspected_in(dump.item)) and read.complete and read.note:
            return f"Coredump of {dump.who}: {_short(_first(read.note), LONGEST_COMPARED)}"
        told = f"Coredump of {dump.who}: {items[0].state}"
        if items[0].state == "refused":
            return f"{told}, {_short(items[0].says)}"
        return f"{told}, {size(dump.size_bytes)}" if dump.size_bytes else told
    if (compared := dumps_in(row.answer)) and row.state not in UNFINISHED:
        return _short(_first(compared.says), LONGEST_COMPARED)
    whole = sum(item.state == "complete" for item in items)
    lost = [item for item in items if item.state not in ("complete", *GROWING)]
    return f"{whole} of {asked_of(row, items)} coredumps complete{_why(lost)}"


def _dumps_copied(items: Sequence[DiagnosticItem]) -> str:
    states = [item.state for item in items]
    copied, known = states.count("done"), states.count("here-already")
    told = f"{counted(copied, 'dump')} copied"
    if known:
        told += f", {known} here already"
    lost = [item for item in items if item.state == "refused"]
    return f"{told}; {len(lost)} refused: {_short(lost[0].says)}" if lost else told


def _files_found(row: Diagnostic, items: Sequence[DiagnosticItem]) -> str:
    rung = rung_of(row.kind)
    name = rung.name if rung else row.kind.capitalize()
    said = [one.says for one in told_by_hosts(row) if one.says]
    if said:
        return f"{name}: {_short(said[0])}"
    facts = [fact for one in told_by_hosts(row) for fact in one.facts]
    if facts:
        return f"{name}: {_standing_out(facts)}"
    if not items:
        return f"{name}: {_nothing(row)}"
    files = sum(item.state == "done" for item in items)
    lost = [item for item in items if item.state == "refused"]
    return f"{name}: {counted(files, 'file')} taken{_why(lost)}"


def _standing_out(facts: Sequence[Fact]) -> str:
    level = {"bad": 0, "warn": 1}
    worst = sorted((one for one in facts if one.level in level), key=lambda one: level[one.level])
    if not worst:
        return f"nothing stands out in {len(facts)} facts"
    more = f", and {len(worst) - 1} more" if len(worst) > 1 else ""
    return f"{_short(worst[0].says)}{more}"


def _nothing(row: Diagnostic) -> str:
    if row.state in UNFINISHED:
        return "nothing came yet"
    return _short(row.says) if row.says else f"{row.state}, nothing was taken"


def _why(lost: Sequence[DiagnosticItem]) -> str:
    if not lost:
        return ""
    first = lost[0]
    more = len({process_of(item) for item in lost}) - 1
    tail = f", and {more} more" if more else ""
    return f"; {who(first)}: {_short(first.says)}{tail}"


def _first(says: str) -> str:
    """Its first sentence; of a dump without an exception the one that says where it stands."""
    return says.removeprefix("No exception. ").partition(". ")[0]


def _short(says: str, longest: int = LONGEST_REASON) -> str:
    """*says* cut, and going on within a sentence; names keep their capitals."""
    text = " ".join(says.split()).rstrip(".")
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return f"{text[0].lower()}{text[1:]}" if text.partition(" ")[0] in _BEGIN else text
