"""The files that stacks come in, told apart by what is in them; nothing is combined yet."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple, get_args

import orjson

from app.domain.pyspy_errors import Kind, classify
from app.domain.stacks.dump import Dump
from app.domain.stacks.json_dump import (
    holds_locals,
    is_json_dump,
    read_json_dump,
    read_json_dumps,
)
from app.domain.stacks.names import FileName, read_file_name
from app.domain.stacks.plain import plain_bytes, plain_text
from app.domain.stacks.text import holds_dump, read_text

_OUR_KINDS = frozenset(
    (*get_args(Kind), "busy", "gone", "restarted", "unknown process", "no-space", "conflict")
)
_SAID = re.compile(
    r"^(?:Error: |Permission Denied|Caused by:|error: |thread '.*' panicked|Usage: )"
    r"|(?:not found|No such file or directory|command not found)\s*$",
    re.MULTILINE,
)
_LOG_FAILURE = re.compile(
    r"^\[[^\]\n]{0,80}?(?P<rank>(?: [A-Z_]{2,12}\d+)*)\] Pyspy failed "
    r"(?:\(py-spy dump(?P<flags>[^)\n]{0,80}?)--pid (?P<pid>\d+)\)"
    r"|to dump PID (?P<older>\d+))\. "  # SGLang before 0.5
    r"Error: (?P<said>.*(?:\n(?!\[).*)*)",
    re.MULTILINE,
)
_JSON = re.compile(rb'\s*(?:\{(?!\s*"log":)|\[\s*(?:[\[{\]]|\Z))')  # "[2026-" begins a log
_LONGEST_WORDS, _MOST_LINES = 20_000, 40  # of an error; what is longer is a log
_STATUSES = re.compile(r"(rc|exit|status|return)", re.IGNORECASE)
_WRAPPED = re.compile(r"\$ [^\n]{0,400}py-spy[^\n]{0,400}\n(?:# rc=(\S+).*\n)?--- ?stdout ?---\n")
_STATES = {"stopped": "T", "tracing-stop": "t", "disk-sleep": "D", "zombie": "Z", "dead": "X"}


class StackFile(NamedTuple):
    """A file by its path under what was asked for."""

    path: str
    body: bytes


@dataclass(slots=True)
class Attempt:
    """One try at the stacks of processes: what came, and what py-spy said instead."""

    name: FileName
    dumps: list[Dump] = field(default_factory=list)
    said: str = ""
    status: int | None = None
    rank: str | None = None  # of a log's line
    from_log: bool = False  # SGLang's watchdog tries schedulers only
    path: str = ""  # of the file with the error
    json: bool = False
    with_locals: bool = False


@dataclass(slots=True)
class Sources:
    """What the files hold, by kind."""

    attempts: dict[str, Attempt] = field(default_factory=dict)  # by stem
    answers: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)  # folder, answer
    statuses: dict[str, int] = field(default_factory=dict)  # stem → exit status
    process_states: dict[int, str] = field(default_factory=dict)  # pid → letter
    topology: dict[str, int] = field(default_factory=dict)  # tp_size …
    unrecognised: list[str] = field(default_factory=list)
    _notes: dict[str, dict[str, Any]] = field(default_factory=dict)  # stem → what we told of it

    def note(self, stem: str) -> dict[str, Any]:
        """What our own answer tells of the file *stem*; empty for files of others."""
        return self._notes.get(stem, {})

    def take_answer(self, folder: str, answer: Mapping[str, Any]) -> None:
        """Keep an ``answer.json``, and what it tells of each file beside it."""
        self.answers.append((folder, answer))
        for told in answer["done"]:
            file = told.get("file") if isinstance(told, dict) else None
            if isinstance(file, dict) and isinstance(file.get("name"), str):
                self._notes[str(PurePosixPath(folder) / file["name"])] = told


def sort_files(files: Sequence[StackFile]) -> Sources:
    """*files* by what they hold. Those that say nothing of stacks are listed, not dropped."""
    sources = Sources()
    for file in files:
        if not _take(sources, file):
            sources.unrecognised.append(file.path)
    for stem, attempt in sources.attempts.items():
        attempt.status = sources.statuses.get(stem, attempt.status)
    return sources


def our_refusal(said: str) -> tuple[str, str, str | None, str | None] | None:
    """Kind, reason, fix, command as ``stacks take`` writes them; None for py-spy's own words."""
    kind, colon, reason = said.partition("\n")[0].partition(": ")
    if not colon or kind not in _OUR_KINDS:
        return None
    rest = [line.strip() for line in said.splitlines()[1:3]]
    fix, command = [*rest, "", ""][:2]
    return kind, reason.strip(), fix or None, command or None


def _take(sources: Sources, file: StackFile) -> bool:
    """Whether *file* was of use."""
    name = read_file_name(file.path)
    if name.error:
        attempt = _attempt(sources, name)
        attempt.said += plain_text(file.body)
        attempt.path = file.path
        return True
    file = StackFile(file.path, plain_bytes(file.body))
    if _JSON.match(file.body):
        return _take_json(sources, name, file)
    return _take_text(sources, name, plain_text(file.body))


def _take_json(sources: Sources, name: FileName, file: StackFile) -> bool:
    if dumps := read_json_dump(file.body):
        attempt = _attempt(sources, name)
        attempt.dumps += dumps
        attempt.json, attempt.with_locals = True, holds_locals(file.body)
        return True
    try:
        told = orjson.loads(file.body)
    except orjson.JSONDecodeError:
        return _take_several(sources, name, file)
    return _take_beside(sources, file.path, told)


def _take_several(sources: Sources, name: FileName, file: StackFile) -> bool:
    """Several documents in one file; JSON that ends too early is a rank that was not read."""
    dumps, whole = read_json_dumps(file.body)
    if dumps:
        attempt = _attempt(sources, name)
        attempt.dumps += dumps
        attempt.json, attempt.with_locals = True, holds_locals(file.body)
    if whole or (not dumps and name.label is None and name.pid is None):
        return whole
    _attempt(sources, name).said += "unknown: Its JSON is cut short or damaged.\nTake it again.\n"
    return True


def _take_beside(sources: Sources, path: str, told: object) -> bool:
    """What lies beside stacks: our answer, exit statuses, the server's sizes, process states."""
    folder, base = str(PurePosixPath(path).parent), PurePosixPath(path).name
    if isinstance(told, list):
        return _take_processes(sources, told)
    if not isinstance(told, dict):
        return False
    if all(map(is_json_dump, told.values())) and told:
        for key, threads in told.items():  # a person's own: {"TP0": […], …}
            beside = StackFile(f"{path}/{key}.json", orjson.dumps(threads))
            _take_json(sources, read_file_name(beside.path), beside)
        return True
    if isinstance(told.get("done"), list) and isinstance(told.get("refused"), list):
        sources.take_answer(folder, told)
        return True
    if sizes := {
        key: size for key in ("tp_size", "pp_size", "dp_size") if (size := _size(told, key))
    }:
        sources.topology.update(sizes)
        return True
    if _STATUSES.match(base) and told and all(isinstance(one, int) for one in told.values()):
        stems = {str(PurePosixPath(path).parent / str(key)): one for key, one in told.items()}
        sources.statuses.update(stems)
        return True
    return False


def _size(told: Mapping[str, Any], key: str) -> int | None:
    args = told.get("server_args")
    size = told.get(key) or (args.get(key) if isinstance(args, dict) else None)
    return size if isinstance(size, int) and 0 < size <= 65_536 else None


def _take_processes(sources: Sources, told: Sequence[object]) -> bool:
    """psutil's list of processes: only what the kernel holds still is of use."""
    found = [one for one in told if isinstance(one, dict) and "status" in one and "pid" in one]
    for one in found:
        if isinstance(one["pid"], int) and str(one["status"]) in _STATES:
            sources.process_states[one["pid"]] = _STATES[str(one["status"])]
    return bool(found)


def _take_text(sources: Sources, name: FileName, text: str) -> bool:
    status, text, said = _unwrapped(text)
    if text.lstrip()[:1] == "[" and (dumps := read_json_dump(text.encode())):
        attempt = _attempt(sources, name)
        attempt.dumps, attempt.json, attempt.status = dumps, True, status
        attempt.with_locals = holds_locals(text.encode())
        return True
    failures = list(_log_failures(text, name.stem))
    for failure in failures:
        sources.attempts[failure.name.stem] = failure
    if holds_dump(text):
        attempt = _attempt(sources, name)
        attempt.dumps += read_text(text)
        attempt.said += said or ("" if failures else _said_in(text))
        attempt.status = status
        return True
    return bool(failures) or _take_words(sources, name, said or text)


def _take_words(sources: Sources, name: FileName, text: str) -> bool:
    """No stacks: an empty file of a rank, or py-spy's error in their place."""
    known = name.label is not None or name.pid is not None
    if text.strip() and not (_says_why(text) if known else _tells(text)):
        return False
    if not text.strip() and not known:
        return False
    _attempt(sources, name).said += text
    return True


def _tells(text: str) -> bool:
    return len(text) < _LONGEST_WORDS and bool(_SAID.search(text))


def _says_why(text: str) -> bool:
    """Whether *text*, in a file that is named after a rank, tells why there are no stacks."""
    short = text.strip().count("\n") < _MOST_LINES and len(text) < _LONGEST_WORDS
    return _tells(text) or (short and classify(text, status=None).kind != "unknown")


def _said_in(text: str) -> str:
    begun = _SAID.search(text)
    return text[begun.start() :] if begun else ""


def _unwrapped(text: str) -> tuple[int | None, str, str]:
    """Exit status, standard output and error of a transcript; *text* itself where it is none."""
    head = _WRAPPED.match(text)
    if head is None:
        return None, text, ""
    out, *rest = re.split(r"\n--- ?stderr ?---\n", text[head.end() :] + "\n", maxsplit=1)
    status = head[1] if head[1] and head[1].lstrip("-").isdigit() else None
    return (int(status) if status else None), out, "".join(rest)


def _log_failures(text: str, stem: str) -> Iterator[Attempt]:
    """The dumps that SGLang's watchdog tried in vain, from the server's log."""
    for found in _LOG_FAILURE.finditer(text):
        mode = "native" if "--native" in (found["flags"] or "") else "plain"
        bare = read_file_name(f"{stem}/log.{found['pid'] or found['older']}.{mode}.txt")
        said = found["said"].removeprefix("Error: ")
        yield Attempt(
            bare, said=said, rank="_".join(found["rank"].split()) or None, from_log=True, path=stem
        )


def _attempt(sources: Sources, name: FileName) -> Attempt:
    return sources.attempts.setdefault(name.stem, Attempt(name))
