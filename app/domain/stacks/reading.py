"""Files of stacks → samples of ranks, and the ranks that are missing with their reasons.

Files of one process in one format are its samples. The same process in another format (native,
with values of variables, text beside JSON) is not counted again: the format with most samples
is taken, the plainest of several. What failed is a missing rank unless another try succeeded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.domain.pyspy_errors import classify
from app.domain.stacks.dump import Dump
from app.domain.stacks.expected import never_tried
from app.domain.stacks.names import in_order
from app.domain.stacks.owners import Owner, owners_of
from app.domain.stacks.samples import FailedRead, Missing, ProcessRead, Reading, Sample
from app.domain.stacks.sources import Attempt, Sources, StackFile, our_refusal, sort_files

_PREFERENCE = ("plain", "nonblocking", "native")
_TIMED_OUT = (124, 137)


@dataclass(frozen=True, slots=True)
class _Read:
    """One dump on its way to be a sample."""

    attempt: Attempt
    dump: Dump
    place: int  # among the dumps of its process in this file
    note: dict[str, Any]

    @property
    def form(self) -> tuple[str, bool, bool]:
        """Mode, text, values of variables: the plainest sorts first."""
        name = self.attempt.name
        mode = str(self.note.get("mode") or name.mode)
        native = "native" in mode or self.dump.native
        # A sample that its state made nonblocking belongs to the plain ones around it.
        mode = "native" if native else ("plain" if self.note else mode)
        return mode, not self.attempt.json, name.with_locals or self.attempt.with_locals

    @property
    def whole(self) -> bool:
        main = self.dump.main
        ended = self.attempt.status in (None, 0)
        return ended and not self.dump.cut and bool(main and main.frames)


def read_files(files: Sequence[StackFile]) -> Reading:
    """What *files* hold of stacks; never raises, as one damaged file is one missing rank."""
    sources = sort_files(files)
    owners = owners_of(sources)
    compared = [owner for owner in owners if owner.rank is not None]
    samples = [sample for owner in compared for sample in _samples(owner, sources)]
    read = {sample.rank for sample in samples}
    failed = [_missing(owner, sources) for owner in compared if owner.rank not in read]
    untried, expected = never_tried(sources.topology, [owner.numbers for owner in compared])
    return Reading(
        samples=tuple(samples),
        missing=(*failed, *untried),
        states=_states(compared, sources, read),
        processes=tuple(_process(owner) for owner in owners if owner.dumps),
        failures=(*_failures(sources), *_restarts(owners)),
        unrecognised=tuple(sources.unrecognised),
        expected=expected,
    )


def _samples(owner: Owner, sources: Sources) -> list[Sample]:
    by_form: dict[tuple[str, bool, bool], list[_Read]] = {}
    for read in _reads(owner, sources):
        if read.whole:
            by_form.setdefault(read.form, []).append(read)
    if not by_form:
        return []
    best = min(by_form, key=lambda form: (-len(by_form[form]), _rank_of(form)))
    held_still = _seen_stopped(owner)
    return [
        Sample(
            rank=str(owner.rank),
            pid=owner.pid,
            number=number,
            dump=read.dump,
            path=read.attempt.name.stem,
            numbers=owner.numbers,
            taken_at=_moment(read.note.get("taken_at")),
            exact=_exact(read, held_still=held_still),
        )
        for number, read in enumerate(sorted(by_form[best], key=_when), start=1)
    ]


def _reads(owner: Owner, sources: Sources) -> Iterable[_Read]:
    for attempt, dumps in owner.dumps:
        note = sources.note(attempt.name.stem)
        for place, dump in enumerate(dumps):
            yield _Read(attempt, dump, place, note)


def _rank_of(form: tuple[str, bool, bool]) -> tuple[int, bool, bool]:
    mode, text, with_locals = form
    return _PREFERENCE.index(mode), with_locals, text


def _when(read: _Read) -> tuple[int, list[tuple[int, str]], int]:
    told = read.note.get("sample")
    number = told if isinstance(told, int) else read.attempt.name.sample or 0
    return number, in_order(read.attempt.name.stem), read.place


def _exact(read: _Read, *, held_still: bool) -> bool | None:
    told = read.note.get("exact")
    if isinstance(told, bool):
        return told
    return held_still if read.attempt.name.mode == "nonblocking" else None


def _moment(told: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(told) if isinstance(told, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


def _missing(owner: Owner, sources: Sources) -> Missing:
    reads = list(_reads(owner, sources))
    kind, reason, fix, command = _why(owner, reads)
    partial = any(main.frames for read in reads if (main := read.dump.main))
    return Missing(
        rank=str(owner.rank),
        kind=kind,
        reason=reason,
        fix=fix,
        command=command,
        pid=owner.pid,
        partial=partial,
        numbers=owner.numbers,
    )


_Why = tuple[str, str, str | None, str | None]


def _why(owner: Owner, reads: Sequence[_Read]) -> _Why:
    """Why no stack of *owner* can be compared: the plainest try tells."""
    if refused := owner.refusal:
        return refused
    for attempt in sorted(owner.attempts, key=lambda one: _PREFERENCE.index(one.name.mode)):
        if attempt.said.strip() or attempt.status not in (None, 0):
            return _cut_short(attempt) if _began(attempt, reads) else _said(attempt)
    if any(read.dump.cut for read in reads):
        return "cut short", "The dump ends in the middle of a stack.", "Take it again.", None
    if any(read.dump.threads for read in reads):
        reason = "Its main thread has no Python frame."
        return "no frames", reason, "Take its native stacks (--native).", None
    if reads:
        reason = "py-spy wrote the head of a dump and no stack: that is a failed dump."
        return (
            "unknown",
            reason,
            "Take it again and keep what py-spy says on its error output.",
            None,
        )
    reason = "The file is empty, and nothing tells why."
    return "unknown", reason, "Take it again; /proc still tells state and wait channel.", None


def _began(attempt: Attempt, reads: Sequence[_Read]) -> bool:
    return any(read.attempt is attempt and read.dump.threads for read in reads)


def _cut_short(attempt: Attempt) -> _Why:
    ended = "by its time limit" if attempt.status in _TIMED_OUT else "with an error"
    reason = f"py-spy was ended {ended} after a part of the stacks: calls are missing."
    return "cut short", reason, "Take it again, with a longer limit.", None


def _said(attempt: Attempt) -> _Why:
    if ours := our_refusal(attempt.said):
        return ours
    timed_out = attempt.status in _TIMED_OUT
    error = classify(
        attempt.said, status=attempt.status, mode=attempt.name.mode, timed_out=timed_out
    )
    return error.kind, error.reason, error.fix, error.command


def _failures(sources: Sources) -> Iterable[FailedRead]:
    for attempt in sources.attempts.values():
        if attempt.said.strip() or attempt.status not in (None, 0):
            kind, reason, fix, command = _said(attempt)
            yield FailedRead(attempt.path or attempt.name.stem, kind, reason, fix, command)
    for folder, answer in sources.answers:
        for told in answer["refused"]:
            if isinstance(told, dict) and not told.get("process_id"):  # nobody to miss
                kind, reason = str(told.get("kind")), str(told.get("reason"))
                yield FailedRead(f"{folder}/answer.json", kind, reason, _text(told.get("fix")))


def _restarts(owners: Iterable[Owner]) -> Iterable[FailedRead]:
    """Processes whose rank was another one in later samples: only the last is compared."""
    for owner in owners:
        if owner.followed_by is not None:
            who = f"{owner.label} was pid {owner.pid}, and then pid {owner.followed_by}"
            yield FailedRead(
                owner.dumps[-1][0].name.stem,
                "restarted",
                f"{who}: its earlier samples are of another process and are not compared.",
                "Find out how it ended: the server's log, and the kernel log.",
            )


def _text(told: object) -> str | None:
    return told if isinstance(told, str) else None


def _seen_stopped(owner: Owner) -> bool:
    """Whether a pausing py-spy met it stopped: its words are exact about that."""
    return any("SIGSTOP" in attempt.said for attempt in owner.attempts)


def _states(owners: Sequence[Owner], sources: Sources, read: set[str]) -> dict[str, str]:
    states = {}
    for owner in owners:
        rank, told = str(owner.rank), sources.process_states.get(owner.pid or -1)
        if rank in read and _ended(owner):
            states[rank] = "X"
        elif owner.state or told:
            states[rank] = owner.state or str(told)
        elif _seen_stopped(owner):
            states[rank] = "T"
    return states


def _ended(owner: Owner) -> bool:
    """Whether it was read, and was not there any more at a later try."""
    if owner.refusal:
        return owner.refusal[0] in ("process_gone_or_zombie", "gone", "restarted")
    last = max(_turn(attempt) for attempt, _ in owner.dumps)
    return any(
        _turn(attempt) > last and _said(attempt)[0] == "process_gone_or_zombie"
        for attempt in owner.attempts
        if attempt.said.strip()
    )


def _turn(attempt: Attempt) -> tuple[int, list[tuple[int, str]]]:
    """Sorts tries in the order in which they were made, as far as names tell."""
    return attempt.name.sample or 0, in_order(attempt.name.stem)


def _process(owner: Owner) -> ProcessRead:
    dumps = [dump for _, dumps in owner.dumps for dump in dumps]
    fullest = max(dumps, key=lambda dump: len(dump.threads))
    threads = fullest.threads
    return ProcessRead(
        rank=owner.rank,
        pid=owner.pid,
        title=next((dump.title for dump in dumps if dump.title), None),
        role=owner.role,
        numbers=owner.numbers,
        threads=len(threads),
        unnamed_threads=sum(thread.name is None for thread in threads),
        threads_without_frames=sum(not thread.frames for thread in threads),
        samples=len(dumps),
    )
