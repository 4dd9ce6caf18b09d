"""The summary of a bundle: one JSON document that pages, CLI and reports read.

A figure that was not measured is null, never 0; totals over ranks are our own, and null
unless every rank is known.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.domain.capture import Bundle, Capture
from app.domain.diagnosis import diagnose
from app.domain.exposition import Exposition, by_label, total
from app.domain.figures import rounded
from app.domain.health import verdict_of
from app.domain.loads import MOST_RANKS, STALE_SECONDS, Loads, RankLoad, rank_json
from app.domain.meaning import meaning
from app.domain.observed import Observed, apart, model, observe
from app.domain.progress import REQUEST_COUNTERS, STEP_COUNTERS, CounterMove, Progress, gauges
from app.domain.server_info import capacity, topology
from app.domain.signals.load import idle
from app.domain.signals.rules import Signals, signals
from app.domain.user_content import user_content

Document = dict[str, Any]

_MAY_HOLD_CONTENT = ("server_info", "get_server_info", "hicache")
_MOST_CONTENT_BYTES = 1 << 20
_LOAD_COUNTERS = ("prefill_tokens_total", "decode_passes_total", "decode_tokens_total")
_ENGINE_PREFIXES = {"sglang": ("sglang:", "sglang_"), "vllm": ("vllm:", "vllm_")}


def summarise(bundle: Bundle, *, baseline: Mapping[str, Any] | None = None) -> Document:
    """The document of interface §2, ``bundle summarize --json``, and what the page adds to it.

    baseline: the summary of the target's last healthy bundle. "High" is high against it;
    without one such a claim is a hypothesis.
    """
    whole = observe(bundle, baseline)
    found = signals(whole)
    seen = whole if found.one_server else apart(whole)
    summary = {
        **_identity(seen),
        "health": verdict_of(seen).as_json(),
        "model": model(seen),
        "topology": topology(seen.info),
        "capacity": _capacity(seen),
        "load": _load(seen),
        "latency": dict(seen.latency),
        "endpoints": [_endpoint(one) for one in bundle.captures],
        **_findings(found),
        "idle": idle(seen),
        "progress": _progress(seen),
        "between_scrapes": _between(whole.progress, comparable=found.one_server),
        **_what_else(whole),
    }
    return {**summary, **_judgement(summary)}


def _identity(seen: Observed) -> Document:
    bundle = seen.bundle
    return {
        "base_url": bundle.base_url,
        "collected_at": _rfc3339(bundle.collected_at),
        "finished_at": _rfc3339(bundle.finished_at),
        "made_by": bundle.made_by or None,
        "frontend": seen.frontend,
        "engine": _engine(seen),
        "version": seen.version,
    }


def _rfc3339(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _engine(seen: Observed) -> str | None:
    """Told by /server_info, /v1/loads, or the prefix of the metrics; None when nothing tells."""
    if seen.info is not None or seen.loads:
        return "sglang"
    names = tuple(seen.exposition.samples) if seen.exposition else ()
    return next(
        (
            name
            for name, starts in _ENGINE_PREFIXES.items()
            if any(n.startswith(starts) for n in names)
        ),
        None,
    )


def _capacity(seen: Observed) -> Document:
    told = capacity(seen.info)
    if told["max_total_num_tokens"] is None and seen.load and seen.load.ranks:
        # Each rank has its own pool: one figure only where all ranks say the same.
        pools = {rank.capacity_tokens for rank in seen.load.ranks}
        told["max_total_num_tokens"] = pools.pop() if len(pools) == 1 else None
    return told


def _load(seen: Observed) -> Document:
    load, usage = seen.load, seen.usage()
    return {
        "artifact": load.artifact if load else None,
        "per_rank": [_rank(seen, load, rank) for rank in load.ranks] if load else [],
        "totals": {
            "running": load.total("running", seen.dp_size) if load else None,
            "waiting": load.total("waiting", seen.dp_size) if load else None,
        },
        "ranks_expected": seen.dp_size,
        "oldest_age_seconds": load.oldest_seconds if load else None,
        "token_usage_max": usage[0] if usage else None,
        "told_by_metrics": _told_by_metrics(seen.exposition),
        "work_done": dict(seen.work_done) if seen.work_done else None,
    }


def _rank(seen: Observed, load: Loads, rank: RankLoad) -> Document:
    """A told throughput is believed only while the rank is fresh and counters move."""
    fresh = load.live or (rank.age_seconds is not None and rank.age_seconds < STALE_SECONDS)
    own = [one for one in seen.progress.moves if one.dp_rank == rank.dp_rank]
    measured = next((_rate(one) for one in own if one.name == "decode_tokens_total"), None)
    believed = fresh and seen.progress.moved is not False
    age = next((one for one in seen.progress.ranks if one.dp_rank == rank.dp_rank), None)
    return {
        **rank_json(rank, believed=believed, measured=measured if fresh else None),
        "stale": None if rank.age_seconds is None else rank.age_seconds >= STALE_SECONDS,
        "quiet_seconds": age.quiet_seconds if age else None,
    }


def _rate(move: CounterMove) -> float | None:
    return move.difference / move.seconds if move.difference is not None and move.seconds else None


def _told_by_metrics(exposition: Exposition | None) -> Document | None:
    """Running and waiting as gauges of /metrics: undated, they freeze with the scheduler."""
    if exposition is None:
        return None
    running, waiting = gauges(exposition)
    names = {"running": "sglang:num_running_reqs", "waiting": "sglang:num_queue_reqs"}
    return {
        "running": running,
        "waiting": waiting,
        "throughput_told": total(exposition, "sglang:gen_throughput"),
        "per_rank": {key: _by_rank(exposition, name) for key, name in names.items()},
    }


def _by_rank(exposition: Exposition, name: str) -> dict[str, float]:
    told = by_label(exposition, name, "dp_rank")
    return {rank: told[rank] for rank in sorted(told)[:MOST_RANKS]}


def _endpoint(capture: Capture) -> Document:
    return {
        "name": capture.name,
        "path": capture.path,
        "outcome": capture.outcome.value,
        "status": capture.status,
        "seconds": rounded(capture.seconds),
        "bytes": len(capture.body) if capture.status is not None else None,
        "started_at": _rfc3339(capture.started_at),
        "detail": capture.detail,
        "so": meaning(capture),
    }


def _findings(found: Signals) -> Document:
    return {
        "signals": [one.as_json() for one in found.claims],
        "quiet": [one.as_json() for one in found.quiet],
        "not_checked": [one.as_json() for one in found.not_checked],
        "rules": len(found.claims) + len(found.quiet) + len(found.not_checked),
    }


def _progress(seen: Observed) -> Document:
    """What two bundles are compared by: last values of counters, and whether work was there."""
    moves = seen.progress
    return {
        "window_seconds": rounded(moves.window_seconds),
        "moved": moves.moved,
        "work": moves.work,
        "work_throughout": moves.work_throughout,
        "quiet_seconds": rounded(moves.quiet_seconds),
        "counters": _counters(seen),
        "counters_from": seen.scrapes[-1].artifact if seen.scrapes else None,
    }


def _counters(seen: Observed) -> dict[str, float]:
    told: dict[str, float] = {}
    if seen.exposition is not None and not seen.exposition.truncated:
        for name in (*REQUEST_COUNTERS, *STEP_COUNTERS):
            value = total(seen.exposition, name)
            if value is not None:
                told[name] = value
    for rank in seen.load.ranks if seen.load else ():
        for name in _LOAD_COUNTERS:
            value = getattr(rank, name)
            if value is not None:
                told[f"DP{rank.dp_rank} {name}"] = float(value)
    return told


def _between(moves: Progress, *, comparable: bool) -> list[Document]:
    """Counters at both looks; without differences where they are not of one server."""
    rows = [one.as_json() for one in moves.moves]
    if comparable and not moves.fell:
        return rows
    return [{**row, "difference": None, "per_second": None} for row in rows]


def _what_else(seen: Observed) -> Document:
    captures = seen.bundle.captures
    problems = [*seen.bundle.problems, *seen.answers.problems]
    problems += [problem for load in seen.loads for problem in load.problems]
    for scrape in seen.scrapes:
        problems += [f"{scrape.artifact}: {problem}" for problem in scrape.exposition.problems]
        if scrape.exposition.truncated:
            problems.append(f"{scrape.artifact}: cut at a limit; there was more than was read.")
    return {
        "redacted": [
            {"artifact": one.name, "at": place} for one in captures for place in one.redacted
        ],
        "user_content": [
            {"artifact": one.name, "at": place}
            for one in captures
            if one.name in _MAY_HOLD_CONTENT and len(one.body) <= _MOST_CONTENT_BYTES
            for place in user_content(one.body.decode("utf-8", "replace"))
        ],
        "problems": problems,
    }


def _judgement(summary: Document) -> Document:
    """What this bundle alone says of the incident."""
    told = diagnose([summary])
    names = ("problem_class", "strongest_signal", "best_guess", "ruled_out", "checked")
    return {name: told[name] for name in (*names, "next_steps", "production_risk")}
