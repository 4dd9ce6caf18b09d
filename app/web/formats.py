"""How figures are written on a page: with unit, thin groups, and a word for "not known"."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import escape

from app.domain.counting import counted
from app.domain.report_parts import rfc3339

THIN = "\u202f"  # a thin space at which no line breaks
UNKNOWN = "not known"
# Controls, and marks that turn the direction of writing: "exe.gpj" would read as "jpg.exe".
_HARMFUL = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clock(moment: datetime | None) -> str:
    """``03:02:20``, UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}" if moment else UNKNOWN


def day(moment: datetime | None) -> str:
    """``30 Nov 2026 03:02:20 UTC``."""
    return f"{moment.astimezone(UTC):%-d %b %Y %H:%M:%S} UTC" if moment else UNKNOWN


def iso(moment: datetime | None) -> str:
    """RFC 3339 with ``Z``, to the second, for ``<time datetime>`` and JSON."""
    return rfc3339(moment) or ""


def span(length: timedelta | float | None) -> str:
    """``41 ms``, ``5.8 s``, ``15 min``, ``5 h``, ``3 days``: one unit, as a person would say it."""
    if length is None:
        return UNKNOWN
    seconds = length.total_seconds() if isinstance(length, timedelta) else float(length)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    for size, word in ((86_400 * 2, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            unit = 86_400 if word == "days" else size
            return f"{seconds / unit:.0f} {word}"
    return UNKNOWN


def size(count: float | None) -> str:
    """``0 B``, ``184 kB``, ``2.1 GB``; decimal units."""
    if count is None:
        return UNKNOWN
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def number(value: float | None, digits: int = 3) -> str:
    """``88 102 441`` in thin groups; up to *digits* significant figures below a thousand."""
    if value is None:
        return UNKNOWN
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}".replace(",", THIN)
    return f"{value:,.0f}".replace(",", THIN) if abs(value) >= 1000 else f"{value:.{digits}g}"


def visible(text: str) -> str:
    """Control characters as escapes: hostile text cannot move a terminal or a page."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text
    )


def cut(text: str, most: int) -> str:
    """*text*, or as much of it as takes *most* bytes of HTML, with an ellipsis."""
    if _html_bytes(text) <= most:
        return text
    kept = text[:most]
    while _html_bytes(kept) > most:
        kept = kept[: len(kept) * 4 // 5]
    return f"{kept}…"


def _html_bytes(text: str) -> int:
    return len(str(escape(visible(text))).encode(errors="replace"))


def milliseconds(value: float | None) -> str:
    """``1.3 ms``, ``0.1 ms``, ``41 ms``: a delay, to a tenth where it is short."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"


def harmless(value: object) -> object:
    """*value* as a page may hold it: like ``visible``, but writing of every language stays."""
    if not isinstance(value, str) or not _HARMFUL.search(value):
        return value
    # The same kind of text again: what is markup already would else be escaped once more.
    return type(value)(_HARMFUL.sub(lambda found: f"\\x{ord(found[0]):02x}", value))


FILTERS: dict[str, Callable[..., Any]] = {
    "clock": clock,
    "day": day,
    "iso": iso,
    "span": span,
    "size": size,
    "number": number,
    "visible": visible,
    "cut": cut,
    "counted": counted,
}
