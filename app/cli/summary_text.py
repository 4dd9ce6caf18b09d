"""A bundle's summary as a compact report for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.capture import Capture
from app.domain.meaning import meaning

_UNKNOWN = "?"
_MARKS = {"bad": "!!", "warn": " !", "note": "  "}


def capture_line(capture: Capture) -> str:
    """One line of progress: what landed, how it ended, how long it took."""
    seconds = "-" if capture.seconds is None else f"{capture.seconds:.2f} s"
    ended = str(capture.status) if capture.outcome == "answered" else capture.outcome.value
    return printable(f"{capture.path:<44} {ended:<12} {seconds:>8}  {meaning(capture)}")


def summary_text(summary: Mapping[str, Any]) -> str:
    """*summary* (interface, bundle summarize) as lines of plain text; unknown is a ``?``."""
    blocks = (_head, _endpoints, _load, _latency, _signals, _next)
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block(summary))))


def printable(text: object) -> str:
    """*text* on one line, without characters that a terminal would obey."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in str(text))


def table(rows: Sequence[Sequence[Any]], *, indent: str = "  ") -> Iterator[str]:
    """*rows* in columns; the first row is the head. None is unknown."""
    shown = [[_UNKNOWN if cell is None else printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (indent + "  ".join(cells)).rstrip()


def _head(summary: Mapping[str, Any]) -> Iterator[str]:
    health, model = _map(summary, "health"), _map(summary, "model")
    yield printable(f"{_known(health.get('verdict'))}: {_known(summary.get('base_url'))}")
    if health.get("says"):
        yield printable(f"  {health['says']}")
    facts = (
        ("class", summary.get("problem_class") or "not decided"),
        ("model", model.get("served_model_name") or model.get("model_path")),
        ("engine", f"{_known(summary.get('engine'))} {_known(summary.get('version'))}"),
        ("frontend", summary.get("frontend")),
        ("topology", _sizes(_map(summary, "topology"))),
        ("collected", summary.get("collected_at")),
    )
    yield from table([(name, value) for name, value in facts])
    if summary.get("idle"):
        yield "  Idle: nothing ran in this window. Collect again under traffic."


def _sizes(topology: Mapping[str, Any]) -> str:
    names = ("tp", "dp", "pp", "ep")
    sizes = (f"{name.upper()}{_known(topology.get(f'{name}_size'))}" for name in names)
    return " ".join(sizes)


def _endpoints(summary: Mapping[str, Any]) -> Iterator[str]:
    yield "Endpoints"
    rows: list[tuple[Any, ...]] = [("path", "outcome", "status", "took", "bytes", "")]
    rows += [
        (
            one.get("path"),
            one.get("outcome"),
            _or_dash(one.get("status")),
            _or_dash(one.get("seconds"), "{:.3f} s"),
            _or_dash(one.get("bytes")),
            one.get("so") or one.get("detail") or "",
        )
        for one in summary.get("endpoints", ())
    ]
    yield from table(rows)


def _load(summary: Mapping[str, Any]) -> Iterator[str]:
    load = _map(summary, "load")
    totals = _map(load, "totals")
    yield (
        f"Load: {_known(totals.get('running'))} running,"
        f" {_known(totals.get('waiting'))} waiting, all ranks together"
    )
    columns = (
        ("rank", "dp_rank", "{}"),
        ("running", "running", "{}"),
        ("waiting", "waiting", "{}"),
        ("KV use", "token_usage", "{:.0%}"),
        ("tokens/s, told", "throughput", "{:.1f}"),
        ("snapshot age", "age_seconds", "{:.2f} s"),
    )
    rows: list[list[Any]] = [[title for title, _, _ in columns]]
    rows += [
        [_formed(rank.get(key), form) for _, key, form in columns]
        for rank in load.get("per_rank") or ()
    ]
    yield from table(rows) if len(rows) > 1 else ("  No rank told its load.",)


def _latency(summary: Mapping[str, Any]) -> Iterator[str]:
    latency = _map(summary, "latency")
    if latency.get("window_seconds") is None:
        yield "Latency: not known, as there are no two scrapes of /metrics."
        return
    window = _formed(latency.get("window_seconds"), "{:.1f} s") or _UNKNOWN
    yield f"Latency in the window between the two scrapes ({window}), seconds"
    rows: list[list[Any]] = [["", "n", "mean", "p50", "p90", "p99"]]
    for name in ("ttft", "e2e", "queue", "inter_token"):
        figures = _map(latency, name)
        quantiles = (_quantile(figures.get(key)) for key in ("mean", "p50", "p90", "p99"))
        rows.append([name, figures.get("n"), *quantiles])
    yield from table(rows)


def _quantile(value: object) -> str | None:
    """A figure, or the bound that is all that the buckets tell."""
    if isinstance(value, Mapping):
        signs = (("over", ">"), ("under", "<"))
        return next((f"{sign} {value[key]:g}" for key, sign in signs if key in value), None)
    return _formed(value, "{:.4g}")


def _signals(summary: Mapping[str, Any]) -> Iterator[str]:
    signals = summary.get("signals") or ()
    yield "Signals" if signals else "Signals: none"
    for claim in signals:
        mark = _MARKS.get(claim.get("level", "note"), "  ")
        yield printable(f"{mark} {claim.get('says')} [{claim.get('id')}, {claim.get('status')}]")


def _next(summary: Mapping[str, Any]) -> Iterator[str]:
    guess = _map(summary, "best_guess")
    if guess:
        yield printable(f"Best guess: {guess.get('says')} [{guess.get('status')}]")
    steps = summary.get("next_steps") or ()
    yield "Next" if steps else "Next: nothing follows from this bundle alone."
    for number, step in enumerate(steps, start=1):
        yield printable(f"  {number}. {step.get('text')} {step.get('why')}")
        if step.get("command"):
            yield printable(f"     {step['command']}")


def _formed(value: object, form: str) -> str | None:
    if value is None:
        return None
    try:
        return form.format(value)
    except (ValueError, TypeError):  # a hostile server may send text where a figure belongs
        return str(value)


def _or_dash(value: object, form: str = "{}") -> str:
    return _formed(value, form) or "-"


def _known(value: object) -> str:
    return _UNKNOWN if value is None else str(value)


def _map(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}
