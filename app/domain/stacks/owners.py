"""Whose stacks they are: attempts gathered by process, and processes named as ranks.

Pids repeat on another host, and a JSON file names nobody: title, file name, our own answer and
the calls themselves tell together.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from app.domain.stacks.dump import Dump
from app.domain.stacks.names import names_a_node
from app.domain.stacks.sources import Attempt, Sources
from app.domain.titles import UNNAMED, RankNumbers, Title, read_rank, read_title

RANKED = ("scheduler", "worker")
_OUTER_CALLS = {
    "run_scheduler_process": "scheduler",
    "run_detokenizer_process": "detokenizer",
    "run_data_parallel_controller_process": "dp controller",
    "worker_main": "worker",  # of vLLM
    "run_engine_core": "engine core",
    "launch_server": "server",
    "serve": "server",
}
_Refusal = tuple[str, str, str | None, str | None]
_Key = tuple[str | None, int | None, str | None]  # node, pid, label


@dataclass(slots=True)
class Owner:
    """A process, and all that was tried on it. *rank* None: it is none that is compared."""

    label: str | None  # of a rank, before it is made unique
    pid: int | None
    node: str | None
    title: str | None = None
    role: str | None = None
    numbers: RankNumbers | None = None
    rank: str | None = None
    state: str | None = None
    refusal: _Refusal | None = None
    followed_by: int | None = None  # the pid of the same rank in later samples
    attempts: list[Attempt] = field(default_factory=list)
    dumps: list[tuple[Attempt, list[Dump]]] = field(default_factory=list)


def owners_of(sources: Sources) -> list[Owner]:
    """The processes in *sources*, in the order of their ranks; those compared have a *rank*."""
    owners: dict[_Key, Owner] = {}
    for attempt in sources.attempts.values():
        for pid, dumps in _by_process(attempt):
            owner = _identified(attempt, pid, dumps, sources)
            apart = owner.label or (attempt.name.stem if pid is None else None)
            known = owners.setdefault((owner.node, pid, apart), owner)
            known.attempts.append(attempt)
            known.dumps += [(attempt, dumps)] if dumps else []
            known.state = owner.state or known.state
    for folder, answer in sources.answers:
        _note_answer(owners, folder, answer)
    merged = _merged(list(owners.values()))
    _find_restarted(merged)
    _name([one for one in merged if one.followed_by is None])
    return sorted(merged, key=_order)


def _by_process(attempt: Attempt) -> Iterator[tuple[int | None, list[Dump]]]:
    """The dumps of an attempt by pid; one entry without dumps where it failed."""
    found: dict[int | None, list[Dump]] = {}
    for dump in attempt.dumps:
        found.setdefault(dump.pid, []).append(dump)
    yield from found.items() if found else [(attempt.name.pid, [])]


def _identified(
    attempt: Attempt, pid: int | None, dumps: Sequence[Dump], sources: Sources
) -> Owner:
    """Who it is: by its title, else by the name of the file, our answer, and its calls."""
    name, note = attempt.name, sources.note(attempt.name.stem)
    title = next((dump.title for dump in dumps if dump.title), None)
    titled = _titled(title)
    alone = len({dump.pid for dump in attempt.dumps}) < 2  # else the name speaks of them all
    told = note.get("rank") or attempt.rank
    numbers = titled.rank if titled else (name.numbers if alone else None)
    if numbers is None and told:
        numbers = read_rank(str(told))
    role = titled.role if titled else (name.role if alone else None)
    return Owner(
        label=numbers.label if numbers else None,
        pid=pid,
        node=names_a_node(name.folder),
        title=title,
        role=role or _role_by_calls(dumps) or ("scheduler" if attempt.from_log else None),
        numbers=numbers,
        state=_last_state(note),
    )


def _titled(title: str | None) -> Title | None:
    """What *title* says; a rank only where it is one: "scheduler_None" has none."""
    told = read_title([title]) if title else None
    if told and told.rank and title and "scheduler_" in title and read_rank(title[-120:]) is None:
        return Title(told.engine, told.role, None)
    return told


def _role_by_calls(dumps: Iterable[Dump]) -> str | None:
    for dump in dumps:
        frames = dump.main.frames[-12:] if dump.main else ()
        for frame in frames:
            if role := _OUTER_CALLS.get(frame.function):
                return role
    return None


def _last_state(note: Mapping[str, Any]) -> str | None:
    before, after = note.get("state_before"), note.get("state_after")
    if before and "state_after" in note and after is None:
        return "X"  # it ended while it was read
    told = after or before
    return str(told)[:1] if told else None


def _note_answer(owners: dict[_Key, Owner], folder: str, answer: Mapping[str, Any]) -> None:
    """Those that our own agent refused, with its words."""
    node = names_a_node(folder)
    for told in answer["refused"]:
        pid = str(told.get("process_id") or "").partition(".")[0] if isinstance(told, dict) else ""
        if not pid.isdigit():
            continue
        rank = str(told["rank"]) if told.get("rank") else None
        numbers = read_rank(rank) if rank else None
        fresh = Owner(rank, int(pid), node, role="scheduler" if rank else None, numbers=numbers)
        owner = owners.setdefault((node, int(pid), rank), fresh)
        kind, reason = str(told.get("kind")), str(told.get("reason"))
        fix, command = told.get("fix"), told.get("command")
        owner.refusal = (
            kind,
            reason,
            fix if isinstance(fix, str) else None,
            command if isinstance(command, str) else None,
        )


def _merged(owners: list[Owner]) -> list[Owner]:
    """What knows only the label, or only the pid, joins the one process that has both."""
    by_label: dict[str, list[Owner]] = {}
    by_pid: dict[tuple[int, str | None], list[Owner]] = {}
    for one in owners:
        if one.label and one.pid is not None:
            by_label.setdefault(one.label, []).append(one)
            by_pid.setdefault((one.pid, one.node), []).append(one)
    kept = []
    for owner in owners:
        same: list[Owner] = []
        if owner.pid is None and owner.label:
            same = by_label.get(owner.label, [])
        elif owner.pid is not None and owner.label is None and owner.role in (*RANKED, None):
            same = by_pid.get((owner.pid, owner.node), [])
        if len(same) == 1 and same[0] is not owner:
            same[0].attempts += owner.attempts
            same[0].dumps += owner.dumps
            same[0].refusal = same[0].refusal or owner.refusal
        else:
            kept.append(owner)
    return kept


def _find_restarted(owners: Iterable[Owner]) -> None:
    """Note who was replaced: all samples of one pid of a rank lie before all those of another."""
    by_label: dict[tuple[str | None, str | None], list[tuple[int, int, Owner]]] = {}
    for one in owners:
        numbers = [attempt.name.sample or 0 for attempt, _ in one.dumps]
        if one.label and numbers and all(numbers):
            found = by_label.setdefault((one.node, one.label), [])
            found.append((min(numbers), max(numbers), one))
    for alike in by_label.values():
        ordered = sorted(alike, key=lambda told: told[:2])
        pairs = list(pairwise(ordered))
        if all(before[1] < after[0] for before, after in pairs):
            for before, after in pairs:
                before[2].followed_by = after[2].pid


def _name(owners: Sequence[Owner]) -> None:
    """Give each process that is compared a name of its own."""
    ranked = [one for one in owners if one.label or one.role in RANKED]
    ranked = [one for one in ranked if one.role in (*RANKED, None)]
    if not ranked:  # vLLM on one GPU: its engine core runs the model itself
        ranked = [one for one in owners if one.role == "engine core"]
    if not ranked:  # plain processes that a person chose
        ranked = [one for one in owners if one.role is None and (one.dumps or one.refusal)]
    labels = Counter(one.label for one in ranked)
    for one in ranked:
        if one.numbers is UNNAMED and labels[one.label] > 1 and not one.node:
            one.label = one.numbers = None  # old titles have no numbers: which rank is not known
    labels = Counter(one.label for one in ranked)
    pids = Counter(one.pid for one in ranked)
    for one in ranked:
        if one.label is None:
            where = f" ({one.node})" if one.node and pids[one.pid] > 1 else ""
            one.rank = f"pid {one.pid}{where}" if one.pid else None
        elif labels[one.label] == 1:
            one.rank = one.label
        else:
            one.rank = f"{one.label} ({one.node or f'pid {one.pid}'})"


def _order(owner: Owner) -> tuple[bool, list[int], str]:
    numbers = owner.numbers
    found = [numbers.dp, numbers.pp, numbers.tp, numbers.ep] if numbers else []
    return owner.rank is None, [-1 if one is None else one for one in found], owner.rank or ""
