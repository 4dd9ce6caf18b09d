"""NCCL's RAS as text, since NCCL 2.24: a table of communicators, then what is amiss with some.

``#0-1 (hash) MISMATCH`` is communicator 1 of the table's row 0. Below it ranks stand in groups
of equal counts: how many they are, and who they are where they are few. Until 2.25 there is one
count for all kinds of collectives.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from app.domain.ras.status import (
    MOST_RANKS,
    MOST_WORDS,
    Absent,
    Communicator,
    Member,
    Row,
    Status,
    Tally,
    Whose,
)
from app.errors import Malformed

_LONGEST_LINE = 2_000  # characters; a list of missing ranks is the longest
_MOST_KINDS = 16  # of collectives; NCCL counts five
_MOST_FILLED = MOST_RANKS  # ranks of groups that NCCL does not list, all together
_WHERE = re.compile(
    r"GPU (\d{1,4})(?: \(NVML (\d{1,4})\))? managed by process (\d{1,10}) on node (\S{1,120})",
    re.ASCII,
)
# Row, communicators, nodes, ranks on each (``7-8``), ranks of each, all ranks.
_ROW = r"\s+".join([r"(\d{1,9})"] * 3 + [r"(\d{1,9}(?:-\d{1,9})?)"] + [r"(\d{1,9})"] * 2)
_NOBODY = Whose()
_VERSION = re.compile(r"NCCL version (\S{1,60})")


@dataclass(slots=True)
class _Known:
    """What was told of one rank so far."""

    whose: Whose = _NOBODY
    counts: dict[str, int] = field(default_factory=dict)
    state: str | None = None
    error: str | None = None


@dataclass(slots=True)
class _Open:
    """A communicator that is still being read."""

    size: int | None
    tally: Tally = field(default_factory=Tally)
    known: dict[int, _Known] = field(default_factory=dict)
    absent: dict[int, Absent] = field(default_factory=dict)

    def rank(self, number: int, where: str | None) -> _Known:
        known = self.known.setdefault(number, _Known())
        if (whose := _whose(where)) != _NOBODY:
            known.whose = whose
        return known


class _Text:
    """Goes through the lines; each kind of line has its method."""

    def __init__(self) -> None:
        self.version: str | None = None
        self.rows: list[Row] = []
        self.open: dict[str, _Open] = {}
        self.dead: list[Whose] = []
        self.silent: list[Whose] = []
        self.dead_count = self.silent_count = self.timeouts = 0
        self.headings: set[str] = set()
        self._places: dict[str, str] = {}
        self._here: _Open | None = None
        self._listing: Callable[[int, str], None] | None = None  # ranks that follow
        self._processes: list[Whose] | None = None
        self._kind = ""

    def take(self, line: str) -> None:
        """The first kind of line that fits."""
        for pattern, method in _LINES:
            if found := pattern.match(line):
                method(self, found)
                return

    def heading(self, found: re.Match[str]) -> None:
        self.headings.add(found[1])
        self._leave()

    def row(self, found: re.Match[str]) -> None:
        self.rows.append(Row(int(found[2]), int(found[5]), found[7], found[8]))

    def communicator(self, found: re.Match[str]) -> None:
        self._leave()
        row = int(found[1])
        size = self.rows[row].size if row < len(self.rows) else None
        self._here = self.open.setdefault(self._name(found), _Open(size))
        if found[4] == "INCOMPLETE":
            self._listing = self._not_answering

    def _name(self, found: re.Match[str]) -> str:
        """Its hash; of another communicator that has the same one, with its place."""
        name, place = found[3].rjust(16, "0"), f"#{found[1]}-{found[2]}"
        return name if self._places.setdefault(name, place) == place else f"{name} {place}"

    def job(self, found: re.Match[str]) -> None:
        self._leave()
        self._processes = self.dead if found[1] == "DEAD" else self.silent

    def process(self, found: re.Match[str]) -> None:
        if self._processes is not None:
            device = int(found[3]) if found[3] else None
            self._processes.append(Whose(found[2], int(found[1]), device))

    def many_dead(self, found: re.Match[str]) -> None:
        self.dead_count = int(found[1])

    def many_silent(self, found: re.Match[str]) -> None:
        self.silent_count = int(found[1])

    def many_timeouts(self, found: re.Match[str]) -> None:
        self.timeouts = int(found[1])

    def missing(self, found: re.Match[str]) -> None:
        """Before 2.26 missing ranks stand in one line, without their processes."""
        for number in _numbers(found[1]):
            self._not_answering(number, "")

    def kind(self, found: re.Match[str]) -> None:
        known = self._here.tally.of if self._here else {}
        self._kind = found[1] if found[1] in known or len(known) < _MOST_KINDS else ""
        self._listing = None

    def group(self, found: re.Match[str]) -> None:
        """``26 ranks have launched up to operation 6650``."""
        count = int(found[2] or 0)
        if self._here and self._kind:
            self._here.tally.add(self._kind, count, int(found[1]))
            self._listing = self._counted(count)

    def one(self, found: re.Match[str]) -> None:
        """``Rank 3 has launched up to operation 6649 -- GPU …``."""
        count = int(found[2] or 0)
        if self._here and self._kind:
            self._here.tally.add(self._kind, count)
            self._counted(count)(int(found[1]), found[3])

    def status_group(self, found: re.Match[str]) -> None:
        self._listing = self._of_status(found[2])

    def status_one(self, found: re.Match[str]) -> None:
        self._of_status(found[2])(int(found[1]), found[3] or "")

    def error_group(self, found: re.Match[str]) -> None:
        self._listing = self._of_error(found[2])

    def error_one(self, found: re.Match[str]) -> None:
        self._of_error(found[2])(int(found[1]), found[3])

    def listed(self, found: re.Match[str]) -> None:
        if self._listing and int(found[1]) < MOST_RANKS:
            self._listing(int(found[1]), found[2])

    def _leave(self) -> None:
        self._here = self._listing = self._processes = None
        self._kind = ""

    def _not_answering(self, number: int, where: str) -> None:
        if self._here:
            self._here.absent[number] = Absent(number, _whose(where), silent=True)

    def _counted(self, count: int) -> Callable[[int, str], None]:
        kind = self._kind

        def note(number: int, where: str) -> None:
            if self._here:
                self._here.rank(number, where).counts[kind] = count

        return note

    def _of_status(self, state: str) -> Callable[[int, str], None]:
        def note(number: int, where: str) -> None:
            if self._here and state in ("NOCOMM", "UNKNOWN"):
                self._here.absent[number] = Absent(number, _whose(where), silent=False)
            elif self._here:
                self._here.rank(number, where).state = state

        return note

    def _of_error(self, error: str) -> Callable[[int, str], None]:
        def note(number: int, where: str) -> None:
            if self._here:
                self._here.rank(number, where).error = error[:MOST_WORDS]

        return note


_Line = Callable[[_Text, re.Match[str]], None]
_LINES: tuple[tuple[re.Pattern[str], _Line], ...] = tuple(
    (re.compile(pattern, re.ASCII), method)
    for pattern, method in (
        (r"  Rank (\d{1,9}) -- (.*)", _Text.listed),
        (r"  (\d{1,9}) ranks have launched up to operation (\d{1,18})", _Text.group),
        (r"  (\d{1,9}) ranks have not launched any()", _Text.group),
        (r"  Rank (\d{1,9}) has launched up to operation (\d{1,18}) -- (.*)", _Text.one),
        (r"  Rank (\d{1,9}) has not launched any operations() -- (.*)", _Text.one),
        (r"  Process (\d{1,10}) on node (\S{1,120}) managing GPUs? (\d{1,4})?", _Text.process),
        (r"#(\d{1,9})-(\d{1,9}) \(([0-9a-f]{1,16})\) ([A-Z]+)", _Text.communicator),
        (r"  Communicator ranks have different (\w+) operation counts", _Text.kind),
        (r"(Errors|Warnings|Job summary|Communicators)\b", _Text.heading),
        (r"(INCOMPLETE|DEAD|TIMEOUT)\s*$", _Text.job),
        (rf"\s*{_ROW}\s+([A-Z]+)\s+([A-Z,]+)\s*$", _Text.row),
        (r"  (\d{1,9}) job process(?:es are| is) considered dead", _Text.many_dead),
        (r"  Missing communicator data from (\d{1,9}) job process", _Text.many_silent),
        (r"  Encountered (\d{1,9}) communication timeout", _Text.many_timeouts),
        (r"  The (?:missing|unknown) ranks?: ([\d, ]+)", _Text.missing),
        (r"  (\d{1,9}) ranks have status ([A-Z]+)", _Text.status_group),
        (r"  Rank (\d{1,9}) has status ([A-Z]+)(?: -- (.*))?", _Text.status_one),
        (r"  (\d{1,9}) ranks reported ([\w ]{1,80})", _Text.error_group),
        (r"  Rank (\d{1,9}) reported ([\w ]{1,80}) -- (.*)", _Text.error_one),
    )
)


def read_text_status(body: bytes) -> Status:
    """The status in *body*; raises Malformed where it is not NCCL's."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n")
    version = _VERSION.search(text[:10_000])
    read = _Text()
    for line in text.split("\n"):
        read.take(line[:_LONGEST_LINE])
    if version is None and not (read.rows or read.open):
        raise Malformed("This text has no communicators: it is not from NCCL RAS.")
    whole = {"Errors", "Warnings"} <= read.headings and text.endswith("\n")
    return Status(
        form="text",
        version=version[1] if version else None,
        whole=whole,
        communicators=tuple(_closed(read.open)),
        rows=tuple(read.rows),
        dead=tuple(read.dead),
        silent=tuple(read.silent),
        dead_count=max(read.dead_count, len(read.dead)),
        silent_count=max(read.silent_count, len(read.silent)),
        timeouts=read.timeouts,
    )


def _closed(open_now: Mapping[str, _Open]) -> Iterator[Communicator]:
    left = _MOST_FILLED
    for name, one in open_now.items():
        for kind, counts in one.tally.of.items():
            left -= _fill_in(one, kind, counts, most=left)
        members = tuple(
            Member(number, known.whose, known.counts, known.state, known.error)
            for number, known in sorted(one.known.items())
        )
        absent = tuple(one.absent[number] for number in sorted(one.absent))
        yield Communicator(name, one.size, members, absent, one.tally.of)


def _fill_in(one: _Open, kind: str, counts: Mapping[int, int], *, most: int) -> int:
    """Name the ranks of the one group that is too large for NCCL to list: they are the rest.

    Returns how many that are; 0 where it is not certain who they are.
    """
    told = {
        number: known.counts[kind] for number, known in one.known.items() if kind in known.counts
    }
    listed = Counter(told.values())
    unlisted = [count for count, many in counts.items() if listed[count] != many]
    if len(unlisted) != 1 or unlisted[0] in listed:
        return 0
    many, size = counts[unlisted[0]], one.size or 0
    if many > most or size != many + len(told.keys() | one.absent.keys()):
        return 0
    rest = [number for number in range(size) if number not in told and number not in one.absent]
    if len(rest) != many:
        return 0
    for number in rest:
        one.rank(number, None).counts[kind] = unlisted[0]
    return many


def _whose(where: str | None) -> Whose:
    found = _WHERE.match(where or "")
    if found is None:
        return _NOBODY
    cuda = int(found[1])
    return Whose(found[4], int(found[3]), cuda, int(found[2]) if found[2] else cuda)


def _numbers(listed: str) -> Iterator[int]:
    """``3,5,6`` as numbers."""
    yield from (int(part) for part in re.findall(r"\d{1,9}", listed, re.ASCII))
