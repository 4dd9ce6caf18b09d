"""The vitals of an incident: what each source answered, with its age or caveat, one cell each.

Read from the newest bundle's summary (interface §2). What was not asked, not answered or not
reported is unknown; only an answer that speaks of the scheduler itself is marked good.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.urgency import Summary
from app.web import formats

STALE_SECONDS = 5.0  # a scheduler that loops publishes far more often

_TOKENS_OUT = ("sglang:generation_tokens_total", "decode_tokens_total")
_SILENCES = {
    "refused": ("bad", "refused"),
    "timeout": ("bad", "no answer"),
    "not offered": ("quiet", "not offered"),
    "no access": ("unknown", "no access"),
    "error": ("unknown", "connection broke"),
    "rejected": ("unknown", "not usable"),
}


@dataclass(frozen=True)
class Vital:
    """One cell: *level* is bad, warn, good, quiet or unknown."""

    source: str
    level: str
    answer: str
    note: str


def vitals(summary: Summary | None) -> tuple[Vital, ...]:
    """The cells in the order of the page; without a bundle each says that nothing was asked."""
    return tuple(_cells(summary or {}))


def _cells(summary: Summary) -> Iterator[Vital]:
    answers = _Answers(summary)
    yield _ready(answers)
    yield _generation(answers)
    yield answers.cell(
        "/server_info", ("/server_info", "/get_server_info"), "waits for every scheduler"
    )
    yield _loads(answers, summary)
    yield _tokens(summary)
    yield _work(summary)


class _Answers:
    """The endpoints of a summary, by path."""

    def __init__(self, summary: Summary) -> None:
        self._endpoints: list[Mapping[str, Any]] = list(summary.get("endpoints") or ())

    def find(self, *paths: str) -> Mapping[str, Any] | None:
        """The first that was asked at one of *paths*; one that was not asked where none was."""
        found = [one for one in self._endpoints if str(one["path"]).partition("?")[0] in paths]
        asked = (one for one in found if one["outcome"] not in ("not asked", "not offered"))
        return next(asked, found[0] if found else None)

    def cell(self, source: str, paths: tuple[str, ...], note: str) -> Vital:
        """The plain cell of an endpoint whose answer of 200 is a good sign."""
        one = self.find(*paths)
        if one is None or one["outcome"] == "not asked":
            return Vital(source, "unknown", "not asked", str((one or {}).get("detail") or ""))
        if one["outcome"] in _SILENCES:
            level, word = _SILENCES[one["outcome"]]
            return Vital(source, level, f"{word}{_after(one)}", note)
        level = "good" if one.get("status") == 200 else "bad"
        return Vital(source, level, f"{one.get('status')}{_in(one)}", note)


def _ready(answers: _Answers) -> Vital:
    """Green here is quiet: it stays green over a dead scheduler."""
    cell = answers.cell("/ready", ("/ready", "/ping"), "the HTTP process alone")
    if cell.level == "good":
        return Vital(cell.source, "quiet", cell.answer, "proves nothing of the scheduler")
    return cell


def _generation(answers: _Answers) -> Vital:
    paths = ("/health_generate", "/health")
    asked = answers.find(*paths)
    cell = answers.cell(paths[0], paths, "asked once, generated a token")
    if asked is None or asked["outcome"] == "not asked":
        return Vital(paths[0], "unknown", "not asked", "sends a real request")
    source = str(asked["path"]).partition("?")[0]
    note = "asked once" if cell.level == "good" else "asked once, no token came"
    return Vital(source, cell.level, cell.answer, note)


def _loads(answers: _Answers, summary: Summary) -> Vital:
    cell = answers.cell("/v1/loads", ("/v1/loads", "/get_load"), "age of the snapshot not known")
    ranks = (summary.get("load") or {}).get("per_rank") or ()
    ages = [rank["age_seconds"] for rank in ranks if rank.get("age_seconds") is not None]
    if cell.level != "good" or not ages:
        return cell
    note = f"snapshot {formats.span(max(ages))} old"
    if max(ages) >= STALE_SECONDS:
        return Vital(cell.source, "warn", "200, but frozen", note)
    return Vital(cell.source, "good", cell.answer, note)


def _tokens(summary: Summary) -> Vital:
    """Tokens that left between the two scrapes; a server of no metrics tells its decode sum."""
    moved = [
        one
        for one in summary.get("between_scrapes") or ()
        if one.get("name") in _TOKENS_OUT and one.get("difference") is not None
    ]
    seconds = (summary.get("progress") or {}).get("window_seconds")
    if not moved or not seconds:
        return Vital("Tokens out", "unknown", "not known", "needs two scrapes of one server")
    first = moved[0]["name"]
    count = sum(one["difference"] for one in moved if one["name"] == first)
    idle = summary.get("idle")
    level = "quiet" if idle or count else "bad"
    note = "idle: nothing was asked of it" if idle and not count else "between two scrapes"
    answer = f"{formats.number(count)} in {formats.span(seconds)}"
    return Vital("Tokens out", "good" if count else level, answer, note)


def _work(summary: Summary) -> Vital:
    totals = (summary.get("load") or {}).get("totals") or {}
    running, waiting = totals.get("running"), totals.get("waiting")
    if running is None and waiting is None:
        return Vital("Requests", "unknown", "not known", "not every rank told its load")
    told = f"{formats.number(running)} running"
    return Vital("Requests", "quiet", told, f"{formats.number(waiting)} waiting")


def _in(one: Mapping[str, Any]) -> str:
    seconds = one.get("seconds")
    return "" if seconds is None else f" in {formats.span(seconds)}"


def _after(one: Mapping[str, Any]) -> str:
    seconds = one.get("seconds")
    return f" in {formats.span(seconds)}" if one["outcome"] == "timeout" and seconds else ""
