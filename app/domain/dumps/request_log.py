"""Requests out of SGLang's request log, as text or as JSON (``--log-requests``).

``Receive`` and ``Finish`` lines of one request identifier are one request. A request without a
Finish line may have been running when the server died; the log itself may also end before.
"""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from app.domain.counting import counted
from app.domain.dumps.building import Parts, built
from app.domain.dumps.problems import Problems
from app.domain.dumps.python_text import CUT, Unreadable, read_call, read_value
from app.domain.dumps.recorded import Dump, RecordedRequest
from app.domain.dumps.scalars import Looked
from app.domain.dumps.source import States
from app.domain.figures import epoch_seconds, figure, table

TEXT_MARKS = (b"Receive: obj=", b"Finish: obj=")
JSON_MARKS = (b'"event": "request.', b'"event":"request.')
_MARKS = re.compile("|".join(re.escape(mark.decode()) for mark in TEXT_MARKS))
_STAMP = re.compile(r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)")
_LONGEST_LINE = 16 * 1024 * 1024
_MOST_REQUESTS = 500_000
_MOST_OF_A_BATCH = 1000
_CUT_LENGTH = 2051  # what SGLang leaves of a long text in JSON at level 2, dots included
_CUT_HALF = 1024


class RequestLog:
    """The lines of a log as a source of requests."""

    def __init__(self, lines: Iterable[bytes], form: str = "request log of SGLang") -> None:
        self._form = form
        self._problems = Problems()
        self._found: dict[str, Parts] = {}
        self._zoneless = False
        self._cut: set[str] = set()
        for number, line in enumerate(lines, start=1):
            self._line(number, line)

    def requests(self, wanted: Container[int] | None = None) -> Iterator[RecordedRequest]:
        for index, parts in enumerate(self._found.values()):
            if wanted is None or index in wanted:
                yield built(index, replace(parts, looked=Looked()))

    def dump(self, states: States) -> Dump:
        problems = [*self._problems.told()]
        if self._zoneless:
            problems.append("Some times are of the log's lines, which have no zone: read as UTC.")
        if self._cut:
            names = ", ".join(sorted(self._cut))
            problems.append(f"The server cut these short in its log: {names}.")
        if states["unfinished"]:
            problems.append(
                f"{counted(states['unfinished'], 'request')} without a Finish line here: running at"
                " the end of this log, or never logged as finished."
            )
        return Dump("requests", self._form, problems=tuple(problems))

    def _line(self, number: int, line: bytes) -> None:
        if not any(mark in line for mark in (*TEXT_MARKS, *JSON_MARKS)):
            return
        if len(line) > _LONGEST_LINE:
            self._problems.add(f"Line {number} was left out: it is too long.")
            return
        try:
            event = _event(line)
        except (Unreadable, orjson.JSONDecodeError) as error:
            self._problems.add(f"Line {number} was left out: {str(error)[:80]}.")
        else:
            if event is not None:
                self._take(event)

    def _take(self, event: "_Event") -> None:
        self._cut |= {name for name, value in event.payload.items() if _is_cut(value)}
        payload = {name: value for name, value in event.payload.items() if not _is_cut(value)}
        rid = payload.get("rid")
        rids = rid[:_MOST_OF_A_BATCH] if isinstance(rid, list) else [rid]
        for one in rids:
            if not isinstance(one, str):
                self._problems.add("A line was left out: it names no request.")
            elif len(self._found) < _MOST_REQUESTS or one in self._found:
                self._one(one, {**payload, "rid": one, "batch_size": len(rids)}, event)

    def _one(self, rid: str, payload: dict[str, Any], event: "_Event") -> None:
        parts = self._found.setdefault(rid, Parts(payload))
        parts.payload = {**parts.payload, **payload}
        if not event.finished:
            parts.created = event.at if parts.created is None else parts.created
            self._zoneless |= parts.output is None
            return
        meta = table(table(event.output).get("meta_info"))
        parts.output = event.output
        parts.created = figure(meta.get("request_received_ts")) or parts.created
        parts.ended = figure(meta.get("request_finished_ts")) or event.at


@dataclass(frozen=True, slots=True)
class _Event:
    """One line: a request was received, or *finished* with *output*. *at* is the line's time."""

    finished: bool
    payload: dict[str, Any]
    output: Any
    at: float | None


def _is_cut(value: object) -> bool:
    if value is CUT:
        return True
    if isinstance(value, str):
        return len(value) == _CUT_LENGTH and value[_CUT_HALF : _CUT_HALF + 3] == "..."
    return isinstance(value, list) and "..." in value[_CUT_HALF : _CUT_HALF + 1]


def _event(line: bytes) -> _Event | None:
    """What *line* tells of a request; None when it only looked like it."""
    brace = line.find(b"{")
    if any(mark in line for mark in JSON_MARKS) and brace >= 0:
        return _of_json(orjson.loads(line[brace:]))
    return _of_text(line.decode("utf-8", "replace"))


def _of_json(told: object) -> _Event | None:
    if not isinstance(told, dict) or not isinstance(told.get("obj"), dict):
        return None
    if told.get("event") == "request.received.openai":
        return None  # the same request comes again once it is adapted
    payload = {**told["obj"], "rid": told.get("rid")}
    finished = told.get("event") == "request.finished"
    return _Event(finished, payload, told.get("out"), epoch_seconds(told.get("timestamp")))


def _of_text(line: str) -> _Event | None:
    found = _MARKS.search(line)
    if found is None:
        return None
    _, payload, end = read_call(line, found.end())
    output: Any = None
    if (told := line.find(", out=", end)) >= 0:
        output, _ = read_value(line, told + len(", out="))
    return _Event(found[0].startswith("Finish"), payload, output, _stamp(line))


def _stamp(line: str) -> float | None:
    """The time at the beginning of a line. The log has no zone: UTC is taken."""
    found = _STAMP.match(line)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found[1].replace(",", "."))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).timestamp()
