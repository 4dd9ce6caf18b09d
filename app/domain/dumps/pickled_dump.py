"""A request or crash dump in a pickle, of any version, also one that broke off."""

from collections.abc import Container, Iterator

from app.domain.counting import counted
from app.domain.dumps.layout import broken_layout, layout_of
from app.domain.dumps.problems import Problems
from app.domain.dumps.recorded import Dump, Kind, RecordedRequest
from app.domain.dumps.records import NoRequest, request_of
from app.domain.dumps.server import server_of
from app.domain.dumps.source import States
from app.domain.dumps.trust import not_of_a_server
from app.domain.pickled.outcome import Kind as ProblemKind
from app.domain.pickled.outcome import Pickled
from app.domain.redaction import Fingerprint

_CRASH_NAME = "crash_dump_"  # how SGLang calls the file; an agent puts a number before it
_MOST_BLOCKED_TOLD = 3
_TITLES: dict[ProblemKind, str] = {
    "truncated": "Truncated",
    "data-after-stop": "Data after the end of the pickle",
    "bad-opcode": "Damaged",
    "bad-value": "Damaged",
    "outside": "Refused",
    "limit": "Refused: limit exceeded",
    "not-a-pickle": "Not a dump",
    "wrapped": "Packed",
}


class PickledDump:
    """A pickle that was read, as a source of requests. *called* is the name of its file."""

    def __init__(self, pickled: Pickled, called: str, fingerprint: Fingerprint) -> None:
        self._pickled, self._called = pickled, called
        broken = pickled.problem is not None and pickled.value is None
        self._layout = broken_layout(pickled.rest) if broken else layout_of(pickled.value)
        self._server = server_of(self._layout.table, fingerprint)
        self._left_out = Problems()
        self._read = 0

    def requests(self, wanted: Container[int] | None = None) -> Iterator[RecordedRequest]:
        for index, record in enumerate(self._layout.records):
            if wanted is not None and index not in wanted:
                continue
            try:
                request = request_of(index, record)
            except NoRequest as error:
                self._left_out.add(f"Record {index} was left out: {error}.")
            else:
                self._read += 1
                yield request

    def dump(self, states: States) -> Dump:
        reasons = [*self._why_unreadable()]
        problem = self._pickled.problem
        return Dump(
            kind="unreadable" if reasons else self._kind(states),
            format=self._layout.format if self._read or not reasons else "pickle",
            server=self._server,
            blocked=self._pickled.blocked,
            problems=(*reasons, *self._left_out.told(), *(() if reasons else self._doubts(states))),
            truncated=problem is not None and problem.kind == "truncated",
        )

    def _why_unreadable(self) -> Iterator[str]:
        if problem := self._pickled.problem:
            whole = f" Salvaged: {counted(self._read, 'whole request')}." if self._read else ""
            yield f"{_TITLES.get(problem.kind, 'Unreadable')}: {problem.says}{whole}"
        if forbidden := not_of_a_server(self._pickled.blocked):
            named = ", ".join(forbidden[:_MOST_BLOCKED_TOLD])
            yield (
                f"Refused: it asks for {named}, which no dump of a server does. Nothing was run."
                " Whoever loads this file with Python's pickle runs what its maker wanted."
            )
        if self._layout.why_not and not self._pickled.problem:
            yield self._layout.why_not
        records = len(self._layout.records)
        if records and not self._read and not self._pickled.problem:
            yield f"No dump: no request among its {counted(records, 'record')}."

    def _kind(self, states: States) -> Kind:
        """Lists are older than crash dumps are; since 0.5.9 only these have launch_command.

        Between, both look alike; but a request dump has no unfinished requests.
        """
        table = self._layout.table
        if "launch_command" in table:
            return "crash dump"
        if not table or self._layout.since_config:
            return "request dump"
        crashed = states["unfinished"] or _CRASH_NAME in self._called
        return "crash dump" if crashed else "request dump"

    def _doubts(self, states: States) -> Iterator[str]:
        """What cannot be told from the file, though it was read."""
        layout = self._layout
        old = layout.table and not layout.since_config
        if old and states.total() and self._kind(states) == "request dump":
            yield (
                "A crash dump of SGLang 0.4.9 to 0.5.7 looks the same when every request in it"
                " had finished."
            )
