"""What changed between two bundles, as a compact report for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.cli.summary_text import printable, table

_LONGEST = 60
_LISTS = (("changes", "Changed"), ("low_suspicion", "Changed, of low suspicion"))


def diff_text(changes: Mapping[str, Any]) -> str:
    """*changes* (app.domain.bundle_diff) as lines of plain text, most suspect first."""
    return "\n".join(_lines(changes))


def _lines(changes: Mapping[str, Any]) -> Iterator[str]:
    for side in ("before", "after"):
        bundle = changes[side]
        yield printable(f"{side:<7} {bundle['collected_at']}  {bundle['base_url']}")
    for key, title in _LISTS:
        yield from _changed(title, changes[key])
    if not changes["changes"]:
        yield "\nNothing changed that would explain a difference."
    volatile = len(changes["volatile"])
    yield f"\n{changes['alike']} values alike, {volatile} that differ between any two starts."
    for section in changes["not_compared"]:
        yield printable(f"Not compared: {section}; one of the bundles does not tell it.")


def _changed(title: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not entries:
        return
    yield f"\n{title}"
    rows: list[tuple[Any, ...]] = [("section", "name", "before", "after", "why it stands here")]
    for one in entries:
        values = _short(one.get("before")), _short(one.get("after"))
        rows.append((one["section"], one["name"], *values, one["why"]))
    yield from table(rows)


def _short(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
