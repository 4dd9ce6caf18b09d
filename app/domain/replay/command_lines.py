"""The command lines that take a replay further, from what is known; what is not is left to fill in.

A page shows them for a person to copy: the console itself neither kills a target again and again
nor builds other people's commits.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from app.domain.replay.symptoms import Symptom

PROGRAM = "incident-console"
TOKEN_VARIABLE = "TARGET_TOKEN"  # noqa: S105  (the name of a variable)
_CHECKED_AT: dict[Symptom, str] = {"crash": "/health", "hang": "/health_generate"}
_CHECK_SECONDS = 30

Place = Literal[
    "CHECK", "CHECKOUT", "RESTART", "GOOD_REV", "BAD_REV", "LAUNCH", "SECONDS", "PATTERN"
]


@dataclass(frozen=True, slots=True)
class Known:
    """What a replay tells of the commands that go on from it; the rest stands in them in capitals.

    *file* is the dump or the requests as the person has it, *selection* an expression of the
    requests in question, *with_token* whether the target asks for a key. Where the *symptom* is
    None, none can be looked for, and a check has to be given.
    """

    file: str
    base_url: str
    symptom: Symptom | None
    selection: str | None = None
    with_token: bool = False


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A line for a POSIX shell; *fill_in* are the words in it that a person has to replace."""

    text: str
    fill_in: tuple[Place, ...]


def reduce_line(known: Known, *, out: str = "smallest.jsonl") -> CommandLine:
    """Finds the fewest requests and the shortest prompts that still show the symptom."""
    line = _Line("reduce", known.file)
    line.add("--base-url", known.base_url)
    if known.selection:
        line.add("--select", known.selection)
    if check := check_of(known.symptom, known.base_url):
        line.add("--check", check)
    else:
        line.fill("--check", "CHECK")
    line.fill("--restart", "RESTART")
    if known.with_token:
        line.add("--token-env", TOKEN_VARIABLE)
    line.add("--out", out)
    return line.told()


def bisect_line(known: Known, *, out: str = "bisect") -> CommandLine:
    """Writes the script that finds the commit; *file* is best what ``reduce`` has left."""
    line = _Line("bisect init", known.file)
    line.fill("--good", "GOOD_REV")
    line.fill("--bad", "BAD_REV")
    line.fill("--checkout", "CHECKOUT")
    line.fill("--launch", "LAUNCH")
    if known.symptom is None:
        line.fill("--check", "CHECK")
    else:
        line.add("--symptom", known.symptom)
    if known.selection:
        line.add("--select", known.selection)
    if known.symptom == "latency":
        line.fill("--latency-seconds", "SECONDS")
    if known.symptom == "output":
        line.fill("--right-output", "PATTERN")
    line.add("--out", out)
    return line.told()


def check_of(symptom: Symptom | None, base_url: str) -> str | None:
    """A check that fails while a target has crashed or hangs; None: only a person can say.

    SGLang answers ``/health_generate`` once it has made a token.
    """
    path = None if symptom is None else _CHECKED_AT.get(symptom)
    if path is None:
        return None
    url = base_url.rstrip("/") + path
    return _joined(["curl", "-fsS", "-o", "/dev/null", "--max-time", str(_CHECK_SECONDS), url])


class _Line:
    def __init__(self, command: str, file: str) -> None:
        path = f"./{file}" if file.startswith("-") else file
        self._words = [PROGRAM, *command.split(), path]
        self._fill_in: list[Place] = []

    def add(self, flag: str, value: str) -> None:
        """*flag* with *value*; one that begins with a dash would be taken for another flag."""
        self._words += [f"{flag}={value}"] if value.startswith("-") else [flag, value]

    def fill(self, flag: str, place: Place) -> None:
        """*flag* with the word of its *place*, which a person has to replace."""
        self._words += [flag, place]
        self._fill_in.append(place)

    def told(self) -> CommandLine:
        return CommandLine(_joined(self._words), tuple(self._fill_in))


def _joined(words: Iterable[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)
