"""What a dump holds, in a sentence made of its document (interface: ``dump summarize``)."""

from collections.abc import Mapping
from typing import Any

from app.domain.counting import counted

LONGEST = 1000
_STATES = ("finished", "unfinished", "aborted", "not_recorded")


def summed_up(document: Mapping[str, Any]) -> str:
    """``Crash dump of SGLang 0.5.9: 120 requests, 12 unfinished.``, or why it cannot be read."""
    kind = str(document.get("kind") or "unreadable")
    total = document.get("requests_total")
    if document.get("dumps_inside") is not None:
        return _archive(document)
    if kind == "unreadable":
        return _unreadable(document, total)
    version = document.get("sglang_version")
    parts = [counted(total, "request")] if isinstance(total, int) else []
    parts += [f"{n} {state}" for state in ("unfinished", "aborted") if (n := document.get(state))]
    of = f" of SGLang {version}" if version else ""
    cut = " The file ends before its end." if document.get("truncated") else ""
    what = "File" if kind == "requests" else kind.capitalize()
    return f"{what}{of}: {', '.join(parts) or 'no request'}.{cut}"[:LONGEST]


def states_of(document: Mapping[str, Any]) -> dict[str, int]:
    """How many requests ended how, each counted once; those of which none did are left out.

    The document counts aborted requests among the finished ones too.
    """
    counts = {name: document.get(name) or 0 for name in _STATES}
    counts["finished"] -= counts["aborted"]
    return {name: count for name, count in counts.items() if count > 0}


def _archive(document: Mapping[str, Any]) -> str:
    files, inside = len(document.get("members") or ()), document["dumps_inside"]
    told = f"{inside} of them became dumps of their own" if inside else "none is a dump"
    return f"Archive of {counted(files, 'file')}: {told}."


def _unreadable(document: Mapping[str, Any], total: int | None) -> str:
    problems = [str(one) for one in document.get("problems") or ()]
    why = problems[0] if problems else "it is no dump that is known here."
    saved = f" {counted(total, 'request')} could be read before that." if total else ""
    return f"Cannot be read: {why[: LONGEST - 100]}{saved}"
