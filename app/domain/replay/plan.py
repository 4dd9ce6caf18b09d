"""A replay before it is sent: what goes out and when, what is stripped, what is left out and why.

A plan keeps places and counts, not requests: a recording may have 100,000 of them. Each body is
made when it is due.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from app.domain.counting import counted
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.traps import conversation_of, session_of
from app.domain.replay.notes import Note, Notes
from app.domain.replay.options import Options, TargetFacts
from app.domain.replay.planned import Sending
from app.domain.replay.reading import recorded_of
from app.domain.replay.sanitising import Sanitised, Unfit, sanitised
from app.domain.replay.schedule import Arrival, Schedule, Slot, most_in_flight, schedule
from app.domain.replay.selection import EVERYTHING, Selection

_NAMED_ROUTES = ("/generate", "/encode")
_MOST_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A request that is not sent, and why, as the end of "It is left out: …"."""

    index: int
    rid: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be sent. *stripped* counts the requests by what is done to them.

    *not_chosen* were not selected, or lie outside the window or the sample.
    """

    options: Options
    target: TargetFacts
    schedule: Schedule
    requests_total: int
    not_chosen: int
    left_out: tuple[LeftOut, ...]
    stripped: Mapping[str, int]
    notes: tuple[Note, ...]
    body_bytes: int
    recorded_in_flight: int | None  # at most at once, when it was recorded

    def sendings(
        self, request_at: Callable[[int], RecordedRequest], *, done: Container[int] = ()
    ) -> Iterator[Sending]:
        """What is sent, in the order it is due; each is made when it is asked for.

        *request_at* gives the request with an index as it was planned. Those in *done* are left
        out, and the first of the rest is due at once: so a replay goes on that was interrupted.
        """
        rest = [slot for slot in self.schedule.slots if slot.index not in done]
        start = rest[0].due_seconds if rest else 0.0
        for slot in rest:
            request = request_at(slot.index)
            made = sanitised(request, self.options, self.target)
            if isinstance(made, Sanitised):  # as it was when it was planned
                yield _sending(request, made, slot.due_seconds - start, self.options)


def plan(
    requests: Iterable[RecordedRequest],
    options: Options,
    target: TargetFacts,
    *,
    selection: Selection = EVERYTHING,
    suspects: Container[int] = (),
    problems: Sequence[str] = (),
) -> Plan:
    """The plan to send *requests*, which are looked at once and not kept, to *target*.

    *problems* are of the file that they were read from: of one that is cut off, some are missing.
    """
    drafted = _Draft(options, target, problems)
    for request in requests:
        chosen = selection.takes(request.index, request.rid, request.state, suspects)
        drafted.see(request, chosen=chosen)
    return drafted.planned()


class _Draft:
    """A plan while its requests pass by."""

    def __init__(self, options: Options, target: TargetFacts, problems: Sequence[str]) -> None:
        self._options, self._target, self._problems = options, target, problems
        self._total = self._unselected = 0
        self._left_out: list[LeftOut] = []
        self._arrivals: dict[int, Arrival] = {}
        self._stripped: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, int] = {}
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}  # most requests have the same
        self._notes = Notes()
        self._last_started = float("-inf")
        self._in_order = True

    def see(self, request: RecordedRequest, *, chosen: bool) -> None:
        self._total += 1
        if not chosen:
            self._unselected += 1
            return
        made = self._made(request)
        if isinstance(made, Unfit):
            self._left_out.append(LeftOut(request.index, request.rid, made.why))
            return
        index = request.index
        self._stripped[index] = self._same.setdefault(made.stripped, made.stripped)
        group = session_of(request.payload) or conversation_of(request.payload)
        self._arrivals[index] = Arrival(index, request.started_at, request.seen_at, group)
        self._notes.see(request)
        if request.started_at is not None:
            self._in_order &= request.started_at >= self._last_started
            self._last_started = request.started_at

    def planned(self) -> Plan:
        made = schedule(self._arrivals.values(), self._options)
        sent = {slot.index for slot in made.slots}
        stripped = Counter(name for index in sent for name in self._stripped[index])
        return Plan(
            options=self._options,
            target=self._target,
            schedule=made,
            requests_total=self._total,
            not_chosen=self._unselected + len(self._arrivals) - len(sent),
            left_out=tuple(self._left_out),
            stripped=dict(sorted(stripped.items())),
            notes=(
                *(Note("file", says, 0, ()) for says in self._problems[:_MOST_PROBLEMS]),
                *self._notes.told(sent, self._options),
                *_about(made, self._options, in_order=self._in_order),
            ),
            body_bytes=sum(self._sizes[index] for index in sent),
            recorded_in_flight=self._in_flight(made.slots),
        )

    def _made(self, request: RecordedRequest) -> Sanitised | Unfit:
        if request.index in self._arrivals:
            return Unfit("another request of the file has the same index")
        made = sanitised(request, self._options, self._target)
        if isinstance(made, Unfit):
            return made
        try:
            self._sizes[request.index] = len(orjson.dumps(made.body))
        except TypeError as error:  # a number beyond 64 bits, nested too deep
            return Unfit(f"JSON cannot say it: {str(error)[:80]}")
        return made

    def _in_flight(self, slots: Iterable[Slot]) -> int | None:
        spans = [
            (one.started_at, one.ended_at)
            for slot in slots
            if (one := self._arrivals[slot.index]).started_at is not None
            and one.ended_at is not None
        ]
        return most_in_flight(spans) if spans else None


def _sending(
    request: RecordedRequest, made: Sanitised, due_seconds: float, options: Options
) -> Sending:
    body, recorded = made.body, recorded_of(request)
    if options.name and made.path in _NAMED_ROUTES and "batch" not in request.features:
        # Digits of one length: SGLang aborts by prefix, and 5 must not abort 57.
        body = {**body, "rid": f"{options.name}-{request.index:07d}"}
    return Sending(
        index=request.index,
        rid=request.rid,
        due_seconds=due_seconds,
        path=made.path,
        body=orjson.dumps(body),
        stream=body.get("stream") is True,
        stripped=made.stripped,
        recorded=recorded if made.asks_the_same else replace(recorded, greedy=None),
    )


def _about(made: Schedule, options: Options, *, in_order: bool) -> Iterator[Note]:
    """What there is to say of the times."""
    if not in_order:
        says = "The file is not in the order of arrival: the requests go out as they arrived."
        yield Note("order", says, len(made.slots), ())
    if made.gaps_seconds and options.mode == "open":
        yield Note("idle-gap", _gaps(made.gaps_seconds, options), len(made.gaps_seconds), ())
    if made.without_time and options.mode == "open" and len(made.slots) > 1:
        yield Note("no-time", _untimed(made), made.without_time, ())


def _untimed(made: Schedule) -> str:
    if made.without_time == len(made.slots):
        return "No time of arrival was recorded: all go out at once, which is not a recorded load."
    return (
        f"{counted(made.without_time, 'request')} without a time of arrival: sent with the last"
        " one, so this is not the recorded load."
    )


def _gaps(gaps_seconds: tuple[float, ...], options: Options) -> str:
    longest, count = f"{max(gaps_seconds):,.0f} s", len(gaps_seconds)
    most = options.cut_gaps_to_seconds
    if count == 1:
        what = f"cut to {most:g} s" if most is not None else "waited out unless you have it cut"
        return f"The recording has a silence of {longest}, which is {what}."
    what = f"each is cut to {most:g} s" if most is not None else "waited out unless you cut them"
    return f"The recording has {count:,} long silences, the longest of {longest}: {what}."


def as_json(planned: Plan, *, most_left_out: int = 100) -> dict[str, Any]:
    """*planned* for a page, the terminal, and the record of what was agreed to."""
    return {
        "requests_total": planned.requests_total,
        "to_send": len(planned.schedule.slots),
        "not_chosen": planned.not_chosen,
        "left_out_total": len(planned.left_out),
        "left_out": [asdict(one) for one in planned.left_out[:most_left_out]],
        "stripped": planned.stripped,
        "notes": [asdict(one) for one in planned.notes],
        "span_seconds": round(planned.schedule.span_seconds, 6),
        "body_bytes": planned.body_bytes,
        "recorded_in_flight": planned.recorded_in_flight,
    }
