"""A replay as plain text: what would be sent, and how it went."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.cli.summary_text import printable, table
from app.domain.counting import counted
from app.domain.replay.plan import Plan, as_json

_MOST_LINES = 12
_MEASURES = {"ttft": "first token", "e2e": "end to end"}


def plan_text(planned: Plan) -> str:
    """What would be sent, and what of it is stripped, left out or worth knowing."""
    told = as_json(planned)
    over = f" over {told['span_seconds']:,.1f} s" if planned.options.mode == "open" else ""
    lines = [f"{counted(told['to_send'], 'request')}{over}, {_mode(planned)}."]
    if told["not_chosen"]:
        lines.append(f"  {counted(told['not_chosen'], 'request')} not chosen.")
    lines += _listed("Left out", [f"{one['index']}: {one['why']}" for one in told["left_out"]])
    stripped = [f"{name} ({count:,})" for name, count in told["stripped"].items()]
    lines += _listed("Stripped, changed or added", stripped, most=len(stripped))
    lines += _listed("To know", [one["says"] for one in told["notes"]])
    return "\n".join(map(printable, lines))


def verdict_text(document: Mapping[str, Any]) -> str:
    """The document of ``replay --json``, on one screen."""
    blocks = (_verdict, _figures, _errors)
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block(document))))


def _mode(planned: Plan) -> str:
    options = planned.options
    if options.mode == "open":
        return f"at the recorded times, speed {options.speed:g}"
    kept = "kept in flight" if options.mode == "closed" else "in flight at most, as fast as it goes"
    return f"{options.parallel} {kept}"


def _listed(title: str, lines: list[str], *, most: int = _MOST_LINES) -> Iterator[str]:
    if not lines:
        return
    yield f"{title}:"
    yield from (f"  {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"  and {len(lines) - most:,} more; --json has all"


def _verdict(document: Mapping[str, Any]) -> Iterator[str]:
    yield printable(f"{document['symptom']}: {document['verdict']} ({document['status']})")
    yield printable(f"  {document['why']}")
    died = document["died"]
    if died and died["says"] not in document["why"]:
        yield printable(f"  {died['says']}")
    if unsent := next((one for one in document["errors"] if one["class"] == "not-sent"), None):
        yield printable(
            f"  {unsent['count']:,} of {document['requests']:,} were not sent: {unsent['example']}"
        )
    yield printable(
        f"  {document['completed']:,} of {document['sent']:,} sent were answered,"
        f" {counted(len(document['trials']), 'trial')}."
    )


def _figures(document: Mapping[str, Any]) -> Iterator[str]:
    rows: list[tuple[Any, ...]] = [("seconds", "", "p50", "p99", "max")]
    for measure, name in _MEASURES.items():
        for side in ("recorded", "replayed"):
            rows += _row(name, side, document[side][measure])
        rows += _row(name, "ratio of pairs", document["ratio"][measure])
    lateness = document["fidelity"]["lateness_ms"]
    if lateness and lateness["p99"] is not None:
        late = (_short(lateness[one]) for one in ("p50", "p99", "max"))
        rows.append(("sent late, ms", _valid(document["fidelity"]), *late))
    if len(rows) > 1:
        yield from table(rows)


def _row(name: str, what: str, told: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The quantiles of what was measured at all."""
    if told["n"]:
        yield (name, what, *(_short(told[one]) for one in ("p50", "p99", "max")))


def _valid(fidelity: Mapping[str, Any]) -> str:
    return {True: "valid", False: "over budget", None: ""}[fidelity["valid"]]


def _errors(document: Mapping[str, Any]) -> Iterator[str]:
    if not document["errors"]:
        return
    rows: list[tuple[Any, ...]] = [("failed", "count", "first", "words of the target, or ours")]
    rows += [
        (one["class"], f"{one['count']:,}", one["first_index"], one["example"] or "no word")
        for one in document["errors"]
    ]
    yield from table(rows)


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"
