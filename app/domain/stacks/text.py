"""Reading py-spy's text, alone or as SGLang's watchdog writes it into the server's log.

Layouts of py-spy 0.3 and 0.4: several processes in one text, command lines of several lines, a
parent that is only named, threads without a name, values of variables. What is no part of a
dump is passed over.
"""

import re
from functools import lru_cache

from app.domain.stacks.dump import (
    LONGEST_NAME,
    MOST_FRAMES,
    MOST_THREADS,
    Dump,
    Frame,
    Thread,
    is_root,
)

_PROCESS = re.compile(r"Process (\d{1,10}): ?(.*)")
_THREAD = re.compile(
    r'Thread (0x[0-9A-Fa-f]{1,16}|\d{1,20}) \((idle|active)(\+gil)?\)(?:: "(.*)")?'
)
_LINE = re.compile(r"(.*):(\d{1,9})")
_PYTHON_FILE = re.compile(r"\.py[wxi]?$|^<.*>$")
_LOG_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d[ T][^\]]*\]")
_FRAMES_INDENT = "    "
_LONGEST_TITLE = 4_096
_LONGEST_LINE = 16_384  # a template of pybind11 takes two thousand characters


def holds_dump(text: str) -> bool:
    """Whether *text* has the head of a dump somewhere."""
    return bool(re.search(r"^Process \d+:", text, re.MULTILINE))


def read_text(text: str) -> list[Dump]:
    """Every process that *text* has a dump of, in its order; one may come several times."""
    reader = _TextReader()
    for line in text.split("\n"):
        reader.take(line)
    reader.end_process()
    if reader.dumps and _cut(text, reader.dumps[-1]):
        last = reader.dumps[-1]
        reader.dumps[-1] = Dump(last.pid, last.title, last.threads, cut=True)
    return reader.dumps


class _TextReader:
    """Takes line by line."""

    def __init__(self) -> None:
        self.dumps: list[Dump] = []
        self._pid: int | None = None
        self._title: list[str] | None = None  # still growing until "Python v…" ends it
        self._told = ""
        self._threads: list[Thread] = []
        self._head: re.Match[str] | None = None
        self._frames: list[Frame] = []

    def take(self, line: str) -> None:
        if line.startswith(_FRAMES_INDENT):
            self._take_frame(line)
        elif line.startswith("Process ") and (begun := _PROCESS.fullmatch(line)):
            self._begin(begun)
        elif self._title is not None:
            self._take_title(line)
        elif line.startswith("Thread ") and (head := _THREAD.fullmatch(line.rstrip())):
            self._end_thread()
            self._head = head if self._pid is not None else None
        elif line and not line.isspace():
            self._end_thread()

    def end_process(self) -> None:
        """What was read of it counts from now on."""
        self._end_thread()
        if self._pid is not None:
            title = self._told or "\n".join(self._title or ())
            self.dumps.append(Dump(self._pid, title[:_LONGEST_TITLE], tuple(self._threads)))
        self._pid, self._title, self._told, self._threads = None, None, "", []

    def _begin(self, begun: re.Match[str]) -> None:
        self.end_process()
        self._pid, self._title = int(begun[1]), [begun[2]]

    def _take_title(self, line: str) -> None:
        assert self._title is not None
        if line.startswith("Python v"):
            self._told, self._title = "\n".join(self._title), None
        elif _LOG_STAMP.match(line):
            self.end_process()
        elif len(self._title) < 64:
            self._title.append(line)

    def _take_frame(self, line: str) -> None:
        full = len(self._frames) >= MOST_FRAMES or len(line) > _LONGEST_LINE
        if self._head is None or line[4:5].isspace() or full:
            return
        if frame := _frame(line.rstrip()):
            self._frames.append(frame)

    def _end_thread(self) -> None:
        if self._head is not None and len(self._threads) < MOST_THREADS:
            number, state, gil, name = self._head.groups()
            active = state == "active"
            owner = True if gil else (False if active else None)  # text hides an idle owner
            frames = tuple(self._frames)
            self._threads.append(Thread(number, name, active, owner, frames))
        self._head, self._frames = None, []


@lru_cache(maxsize=16_384)
def _frame(line: str) -> Frame | None:
    """The call in ``    function (file:line)``; None where it is none."""
    at = _place_begins(line)
    if at is None:
        return None
    function, place = line[4 : at - 1].strip(), line[at + 1 : -1]
    numbered = _LINE.fullmatch(place)
    file, number = (numbered[1], int(numbered[2])) if numbered else (place, None)
    native = not _PYTHON_FILE.search(file)
    return Frame(function[:LONGEST_NAME], file[:LONGEST_NAME], number or None, native)


def _place_begins(line: str) -> int | None:
    """Where the bracket opens that the last one closes; names and files may hold others."""
    if not line.endswith(")"):
        return None
    at = line.rfind(" (")
    if "(" not in line[at + 2 :] and ")" not in line[at + 2 : -1]:
        return at + 1 if at > 4 else None
    depth = 0
    for place in range(len(line) - 1, 4, -1):
        depth += (line[place] == ")") - (line[place] == "(")
        if depth == 0:
            return place if line[place - 1] == " " else None
    return None


def _cut(text: str, last: Dump) -> bool:
    """Whether *text* ends within a stack: py-spy ends every line, and a main thread in a module."""
    end = text.rsplit("\n", 1)[-1]
    if not end:
        return False
    if end.startswith(_FRAMES_INDENT) and _frame(end.rstrip()) is None:
        return True
    thread = last.threads[-1] if last.threads else None
    outermost = thread.frames[-1] if thread and thread.frames else None
    in_main = thread is not None and thread is last.main
    return bool(in_main and outermost and not outermost.native and not is_root(outermost))
