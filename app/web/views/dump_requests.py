"""Recorded requests as pages list them: shape only (T0), in the words of the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import orjson

from app.store.dump_rows import row_of
from app.store.dump_tables import DumpRequest
from app.web.formats import number, span, visible

NOT_RECORDED = "not recorded"
_LEVELS = {"finished": "", "unfinished": "warn", "aborted": "quiet"}


def moment_of(seconds: float | None) -> datetime | None:
    """A time that a file tells; None for one that no calendar has."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def exactly(moment: datetime | None) -> str:
    """``05:54:04.958``, UTC: within a second the order counts."""
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}" if moment else "not known"


@dataclass(frozen=True)
class RequestTold:
    """One request in a table; texts from outside with their control characters shown."""

    index: int
    rid: str | None
    state: str
    level: str  # its mark; empty for ink on paper
    prompt: str
    completion: str
    took: str
    started_at: datetime | None
    started: str
    features: Sequence[str]
    is_suspect: bool
    is_unfinished: bool
    has_problems: bool

    @classmethod
    def of(cls, row: DumpRequest) -> Self:
        state = row.state or NOT_RECORDED
        started_at = moment_of(row.started_at)
        return cls(
            index=row.position,
            rid=visible(row.rid) if row.rid else None,
            state=state,
            level=_LEVELS.get(state, "unknown"),
            prompt=_prompt(row),
            completion=number(row.completion_tokens),
            took=_took(row),
            started_at=started_at,
            started=exactly(started_at),
            features=[visible(word) for word in row.features.split(",") if word],
            is_suspect=row.suspect_rank is not None,
            is_unfinished=row.state == "unfinished",
            has_problems=bool(row.problems),
        )


@dataclass(frozen=True)
class Fact:
    """One line of a list of facts."""

    name: str
    value: str


def facts_of(row: DumpRequest) -> list[Fact]:
    """Everything that the file tells of the shape of one request."""
    streamed = {None: "not known", True: "streamed", False: "in one piece"}[row.stream]
    return [
        Fact("Identifier", visible(row.rid) if row.rid else "none"),
        Fact("Endpoint", visible(row.endpoint) or "not known"),
        Fact("Prompt", _prompt(row)),
        Fact("Of the prompt cached", _tokens(row.cached_tokens)),
        Fact("Answer", f"{_tokens(row.completion_tokens)}, {streamed}"),
        Fact("Ended because", visible(row.finish_reason) if row.finish_reason else "not known"),
        Fact("Arrived", _when(row.started_at)),
        Fact("Ended", _when(row.finished_at)),
        Fact("Took", _took(row)),
    ]


def parameters_of(row: DumpRequest) -> list[Fact]:
    """Its sampling parameters: numbers and switches only."""
    sampling: Mapping[str, Any] = row_of(row)["sampling"]
    return [
        Fact(visible(str(name)), orjson.dumps(value).decode()) for name, value in sampling.items()
    ]


def problems_of(row: DumpRequest) -> list[str]:
    """What is wrong with what the file has of it."""
    return [visible(str(problem)) for problem in row_of(row)["problems"]]


def _prompt(row: DumpRequest) -> str:
    if row.prompt_tokens is not None or row.prompt_characters is None:
        return _tokens(row.prompt_tokens)
    return f"{number(row.prompt_characters)} characters"


def _tokens(count: int | None) -> str:
    return number(count) if count is None else f"{number(count)} tokens"


def _took(row: DumpRequest) -> str:
    told = _precise(row.elapsed_seconds)
    running = row.state == "unfinished" and row.elapsed_seconds is not None
    return f"{told}, still running" if running else told


def _precise(seconds: float | None) -> str:
    """As ``span``, but what took 81 s did not take a minute."""
    if seconds is not None and 60 <= seconds < 1000:
        return f"{seconds:.1f} s"
    return span(seconds)


def _when(seconds: float | None) -> str:
    moment = moment_of(seconds)
    return f"{moment:%-d %b %Y} {exactly(moment)} UTC" if moment else "not known"
