"""The document of a dump as a compact report for a terminal."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from app.cli.summary_text import printable, table
from app.domain.counting import counted

_MOST_SUSPECTS = 8
_MOST_PROBLEMS = 8
_MOST_BLOCKED = 6
_SHOWN_OF_RID = 36


def dump_text(document: Mapping[str, Any]) -> str:
    """*document* (interface, dump summarize) as lines of plain text; unknown is a ``?``."""
    blocks = (_head, _suspects, _figures, _requests, _kept, _problems)
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block(document))))


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    yield printable(f"{document['kind']}: {_counts(document)}")
    yield printable(f"  {document['file']}")
    yield printable(f"  {document['format']}")


def _counts(document: Mapping[str, Any]) -> str:
    total = document["requests_total"]
    if document["kind"] == "unreadable":
        return str(document["problems"][0])
    died = " when the server died" if document["kind"] == "crash dump" else ""
    told = [counted(total, "request")]
    if document["unfinished"]:
        told.append(f"{document['unfinished']:,} unfinished{died}")
    if document["aborted"]:
        told.append(f"{document['aborted']:,} aborted")
    return ", ".join(told)


def _suspects(document: Mapping[str, Any]) -> Iterator[str]:
    suspects = document["suspects"]
    if not suspects:
        return
    yield "Look at these first"
    rows: list[tuple[Any, ...]] = [("index", "request", "why")]
    rows += [
        (one["index"], (one["rid"] or "?")[:_SHOWN_OF_RID], one["why"])
        for one in suspects[:_MOST_SUSPECTS]
    ]
    yield from table(rows)
    if len(suspects) > _MOST_SUSPECTS:
        yield f"  and {len(suspects) - _MOST_SUSPECTS:,} more; --json has all"


def _figures(document: Mapping[str, Any]) -> Iterator[str]:
    facts = [
        ("model", document["model_path"]),
        ("server", _server(document)),
        ("launched", document["launch_command"]),
        ("arrivals", _arrivals(document)),
        ("prompt tokens", _lengths(document["prompt_tokens"], document["requests_total"])),
        ("completion tokens", _lengths(document["completion_tokens"], document["requests_total"])),
        ("features", _features(document)),
    ]
    yield from table([fact for fact in facts if fact[1] is not None])


def _server(document: Mapping[str, Any]) -> str | None:
    topology = document["topology"]
    if not topology:
        version: str | None = document["sglang_version"]
        return version
    names = ("tp", "dp", "pp", "ep")
    sizes = (f"{name.upper()}{topology[f'{name}_size'] or '?'}" for name in names)
    mode = topology["disaggregation_mode"]
    version = document["sglang_version"]
    parts = (f"SGLang {version}" if version else None, " ".join(sizes), mode)
    return ", ".join(part for part in parts if part)


def _arrivals(document: Mapping[str, Any]) -> str | None:
    first, rate = document["first_started_at"], document["arrival_rate_per_second"]
    if first is None:
        return None
    began = datetime.fromtimestamp(first, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    every = "" if rate is None else f", {rate:.3g} a second"
    return f"from {began} on, within {document['span_seconds']:.1f} s{every}"


def _lengths(figures: Mapping[str, Any], total: int) -> str | None:
    if not figures["n"]:
        return "not known" if total else None
    told = f"p50 {figures['p50']:,}  p99 {figures['p99']:,}  max {figures['max']:,}"
    return told if figures["n"] == total else f"{told}  (of the {figures['n']:,} that are known)"


def _features(document: Mapping[str, Any]) -> str | None:
    counts = [f"{count:,} {name}" for name, count in document["features"].items() if count]
    if document["streaming"]:
        counts.append(f"{document['streaming']:,} streaming")
    return ", ".join(counts) or None


def _requests(document: Mapping[str, Any]) -> Iterator[str]:
    requests = document["requests"]
    if not requests:
        return
    more = document["requests_total"] - len(requests)
    yield "Requests" + (f", {len(requests)} of {document['requests_total']:,}" if more else "")
    rows: list[tuple[Any, ...]] = [
        ("index", "request", "state", "prompt", "completion", "elapsed", "features")
    ]
    rows += [_request(one) for one in requests]
    yield from table(rows)
    for one in requests:
        if one.get("preview"):
            yield printable(f"  {one['index']}: {one['preview']}")


def _request(one: Mapping[str, Any]) -> tuple[Any, ...]:
    elapsed = one["elapsed_seconds"]
    return (
        one["index"],
        (one["rid"] or "?")[:_SHOWN_OF_RID],
        one["state"] or "not recorded",
        _prompt(one),
        one["completion_tokens"],
        None if elapsed is None else f"{elapsed:.2f} s",
        " ".join(one["features"]),
    )


def _prompt(one: Mapping[str, Any]) -> str | None:
    if one["prompt_tokens"] is not None:
        return f"{one['prompt_tokens']:,} tokens"
    if one["prompt_characters"] is not None:
        return f"{one['prompt_characters']:,} characters"
    return None


def _kept(document: Mapping[str, Any]) -> Iterator[str]:
    if blocked := document["blocked"]:
        more = len(blocked) - _MOST_BLOCKED
        named = ", ".join(blocked[:_MOST_BLOCKED]) + (f" and {more} more" if more > 0 else "")
        yield printable(f"Classes and callables kept inert: {named}")
    if redacted := document["redacted"]:
        yield f"Secrets masked: {counted(len(redacted), 'place')}"


def _problems(document: Mapping[str, Any]) -> Iterator[str]:
    told = document["problems"][1 if document["kind"] == "unreadable" else 0 :]
    for problem in told[:_MOST_PROBLEMS]:
        yield printable(f"Not as it should be: {problem}")
    if len(told) > _MOST_PROBLEMS:
        yield f"  and {len(told) - _MOST_PROBLEMS:,} more; --json has all"
