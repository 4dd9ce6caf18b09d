"""A comparison of stacks as a compact report for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.cli.summary_text import printable, table
from app.domain.counting import counted
from app.domain.stacks.wording import spans

_MOST_GROUPS = 12
_MOST_BRANCHES = 6
_MOVED = {True: "moved", False: "same", None: "?"}


def comparison_text(told: Mapping[str, Any]) -> str:
    """*told* (interface, stacks compare) as lines of plain text; unknown is a ``?``."""
    blocks = (_head, _groups, _parting, _missing, _restarted, _settles)
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block(told))))


def _head(told: Mapping[str, Any]) -> Iterator[str]:
    stuck = {True: "stuck", False: "not stuck", None: "stuck or slow: unknown"}[told["stuck"]]
    if told["verdict"] == "idle" and told["stuck"] is None:
        stuck = "one look"
    read = f"{told['captured']} of {counted(told['ranks'], 'rank')} read"
    yield printable(f"{told['verdict']} · {stuck} · {read} · {counted(told['samples'], 'sample')}")
    if told["outliers"]:
        yield printable(f"  apart: {spans(told['outliers'])}")
    yield printable(f"  {told['says']}")


def _groups(told: Mapping[str, Any]) -> Iterator[str]:
    if not told["groups"]:
        return
    shown = told["groups"][:_MOST_GROUPS]
    rows: list[tuple[Any, ...]] = [("ranks", "many", "newest call", "where", "waits for", "moved")]
    for group in shown:
        wait = group["operation"] or group["primitive"]
        moved = _MOVED[group["moved"]]
        who = spans(group["ranks"])
        rows.append((who, len(group["ranks"]), group["top"], group["where"], wait, moved))
    yield from table(rows)
    if left := len(told["groups"]) - len(shown):
        yield f"  and {left} more groups; --json has them all"


def _parting(told: Mapping[str, Any]) -> Iterator[str]:
    divergence = told["divergence"]
    if divergence is None:
        return
    yield printable(f"they part in {_call(divergence)}")
    for branch in divergence["branches"][:_MOST_BRANCHES]:
        yield printable(f"  {spans(branch['ranks'])} → {_call(branch)}")


def _call(told: Mapping[str, Any]) -> str:
    return f"{told['frame']} ({told['where']})" if told["frame"] else "(no further call)"


def _missing(told: Mapping[str, Any]) -> Iterator[str]:
    if not told["missing"]:
        return
    yield "not read"
    alike: dict[tuple[str | None, ...], list[str]] = {}
    for one in told["missing"]:
        why = (one["reason"], one["fix"], one["command"])
        alike.setdefault(why, []).append(one["rank"])
    for (reason, fix, command), ranks in list(alike.items())[:_MOST_GROUPS]:
        yield printable(f"  {spans(ranks)}: {reason} {fix or ''}".rstrip())
        if command:
            yield printable(f"    {command}")
    if left := sum(len(ranks) for ranks in list(alike.values())[_MOST_GROUPS:]):
        yield f"  and {left} more"


def _restarted(told: Mapping[str, Any]) -> Iterator[str]:
    restarted = [one for one in told["pyspy_errors"] if one["kind"] == "restarted"]
    if restarted:
        yield "started anew"
    for one in restarted[:_MOST_GROUPS]:
        yield printable(f"  {one['reason']} {one['fix']}")
    if (left := len(restarted) - _MOST_GROUPS) > 0:
        yield f"  and {left} more"


def _settles(told: Mapping[str, Any]) -> Iterator[str]:
    if not told["settles"]:
        return
    yield "what would settle it"
    for one in told["settles"]:
        yield printable(f"  {one}")
