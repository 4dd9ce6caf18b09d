"""One line of Prometheus text: what it says, or why it cannot be read. Linear in its length."""

import re
from collections.abc import Mapping

MAX_LABELS = 64  # a series of SGLang has about eight; more is somebody else's memory to fill
BLANKS = " \t\r"

_NAME = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*+)(?:[ \t]*+(\{)|[ \t]++)")
# Possessive, so that a long run of anything is walked once and never again.
_LABEL = re.compile(
    r"[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"
    r'"([^"\\]*+(?:\\[\\"n][^"\\]*+)*+)"[ \t]*+(?:,|(?=\}))'
)
# The usual form: nothing escaped, no blanks. Checked whole, then split; both without backing up.
_PLAIN_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*+)="([^"\\]*+)"(?:,|\Z)')
_PLAIN_LABELS = re.compile(rf"(?:{_PLAIN_LABEL.pattern}){{0,{MAX_LABELS}}}+")
_CLOSE = re.compile(r"[ \t]*+\}[ \t]*+")
# A value, perhaps its time (Prometheus: ms, OpenMetrics: s), perhaps an exemplar.
_TAIL = re.compile(
    r"([^ \t#{}]++)(?:[ \t]++(-?[0-9.]++(?:[eE][+-]?[0-9]++)?))?(?:[ \t]*+#[ \t]*+\{.*)?"
)
_TYPE = re.compile(r"#[ \t]++TYPE[ \t]++([a-zA-Z_:][a-zA-Z0-9_:]*+)[ \t]++([a-z]++)")
_NUMBER_CHARS = 400  # the longest double printed in full has 309 digits before its point
_ESCAPE = re.compile(r'\\([\\"n])')
_MEANT = {"\\": "\\", '"': '"', "n": "\n"}


def sample_name(line: str) -> str | None:
    """The name that *line*, without outer blanks, begins with; None when it begins with none."""
    match = _NAME.match(line)
    return match[1] if match else None


def read_line(line: str) -> tuple[str, Mapping[str, str], float]:
    """Name, labels and value of a sample line without outer blanks.

    Raises ValueError with the reason, short enough to show, when it is not one.
    """
    start = _NAME.match(line)
    if start is None:
        raise ValueError("no metric name followed by labels or a value")
    labels, position = _labels(line, start.end()) if start[2] else ({}, start.end())
    tail = _TAIL.fullmatch(line, position)
    if tail is None:
        raise ValueError(f"no value where one should stand: {_shown(line[position:])}")
    return start[1], labels, number(tail[1])


def read_type(comment: str) -> tuple[str, str] | None:
    """Family and type that a comment line without outer blanks tells; None for any other."""
    match = _TYPE.fullmatch(comment)
    return (match[1], match[2]) if match else None


def read_labels(block: str) -> Mapping[str, str] | None:
    """The labels of what stands between the braces; None when that is not one whole block."""
    if _PLAIN_LABELS.fullmatch(block):
        pairs = _PLAIN_LABEL.findall(block)
        plain = dict(pairs)
        return plain if len(plain) == len(pairs) else None
    try:
        labels, position = _labels(block + "}", 0)
    except ValueError:
        return None
    return labels if position == len(block) + 1 else None


def number(text: str) -> float:
    """The value as Prometheus writes it, NaN and ±Inf too. Raises ValueError, as for 0x1p3."""
    try:
        # Python alone would also take 1_000 and the digits of other scripts.
        if "_" not in text and text.isascii() and len(text) <= _NUMBER_CHARS:
            return float(text)
    except ValueError:
        pass
    raise ValueError(f"not a number: {_shown(text)}")


def _labels(text: str, position: int) -> tuple[dict[str, str], int]:
    """The labels from *position* on, just inside the brace, and where their block has ended."""
    labels: dict[str, str] = {}
    while (match := _LABEL.match(text, position)) is not None:
        name, value = match[1], match[2]
        if name in labels:
            raise ValueError(f"label {_shown(name)} stands there twice")
        if len(labels) == MAX_LABELS:
            raise ValueError(f"more than {MAX_LABELS} labels")
        labels[name] = _ESCAPE.sub(_meaning, value) if "\\" in value else value
        position = match.end()
    close = _CLOSE.match(text, position)
    if close is None:
        raise ValueError(f"labels cannot be read from: {_shown(text[position : position + 80])}")
    return labels, close.end()


def _meaning(escape: re.Match[str]) -> str:
    return _MEANT[escape[1]]


def _shown(text: str) -> str:
    """*text* quoted and cut, with control characters spelled out: it comes from the target."""
    return ascii(text if len(text) <= 40 else text[:40] + "…")
