"""Hostile text inside Markdown: shown as it is, never a link, a tag, a table or a command."""

import re

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#|~&!$@])")
_SCHEME = re.compile(r"(?<=\w):(?=//|\w+@)|(?<=javascript):|(?<=mailto):|(?<=data):", re.IGNORECASE)
_WWW = re.compile(r"\b(www)\.", re.IGNORECASE)


def escaped(text: str) -> str:
    """*text* on one line, for running text and table cells."""
    line = _ACTIVE.sub(r"\\\1", " ".join(visible(text).split()))
    return _WWW.sub(r"\1\\.", _SCHEME.sub(r"\\:", line))


def fenced(text: str) -> str:
    """*text* as a block of code whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{visible(text)}\n{fence}"


def visible(text: str) -> str:
    """*text* with control and direction characters as escapes; line ends and tabs stay."""
    lines = text.replace("\r\n", "\n")
    return "".join(
        char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in lines
    )
