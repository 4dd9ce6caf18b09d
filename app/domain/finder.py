"""The filter of the incident list: ``class:hang target:decode sev:1 words``, as typed."""

import re
from dataclasses import dataclass

TABS = ("open", "unacknowledged", "mine", "resolved", "all")
MAX_LENGTH = 200
_WORD = re.compile(r"(class|target|sev|state):(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Filter:
    """What to look for; None does not restrict, ``?`` asks for what is not set."""

    problem_class: str | None = None  # its beginning: "hang"
    target: str | None = None  # a part of its name
    severity: str | None = None  # "sev1" or "?"
    state: str | None = None
    words: tuple[str, ...] = ()  # each in the title, the targets or the strongest signal
    number: int | None = None  # "#142" or "142"


NO_FILTER = Filter()


def read_filter(text: str) -> Filter:
    """What *text* asks for; a prefix that is not known is searched for as a word."""
    named: dict[str, str] = {}
    words: list[str] = []
    number: int | None = None
    for word in text[:MAX_LENGTH].split():
        if match := _WORD.fullmatch(word):
            named[match[1].lower()] = match[2].lower()
        elif re.fullmatch(r"#?\d{1,18}", word, re.ASCII):
            number = int(word.lstrip("#"))
        else:
            words.append(word)
    return Filter(
        problem_class=named.get("class"),
        target=named.get("target"),
        severity=_severity(named.get("sev")),
        state=named.get("state"),
        words=tuple(words),
        number=number,
    )


def _severity(word: str | None) -> str | None:
    return f"sev{word}" if word and word.isdigit() else word
