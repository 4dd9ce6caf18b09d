"""Everything that one bundle holds, read once: what rules, verdict and summary look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.answers import Answers, in_order_asked, read_answers
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.claims import Evidence
from app.domain.exposition import Exposition, parse, total
from app.domain.figures import text
from app.domain.ingress import ingress
from app.domain.latency import FAMILIES, latency, work_done
from app.domain.loads import Loads, read_loads
from app.domain.progress import (
    OTHER_COUNTERS,
    REQUEST_COUNTERS,
    STEP_COUNTERS,
    Progress,
    Scrape,
    progress,
)
from app.domain.server_info import ServerInfo, read_server_info

USAGE_GAUGES = (
    "sglang:token_usage",
    "sglang:full_token_usage",
    "sglang:swa_token_usage",
    "sglang:mamba_usage",
)
STARTUP = "sglang:startup_time_seconds"
_GAUGES = (
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
    "sglang:gen_throughput",
    "sglang:num_retracted_reqs",
    "sglang:max_total_num_tokens",
    "sglang:avg_request_queue_latency",
    "vllm:num_requests_running",
    STARTUP,
    *USAGE_GAUGES,
)
_WANTED = frozenset(
    name.removesuffix("_count")
    for name in (*FAMILIES, *REQUEST_COUNTERS, *STEP_COUNTERS, *OTHER_COUNTERS, *_GAUGES)
)
_SCRAPES = ("metrics_1", "metrics_2")
_LOADS = ("loads_all_1", "loads_core_1", "loads_all_2", "get_load")


@dataclass(frozen=True, slots=True)
class Observed:
    """One bundle, read. Nothing here is a judgement yet."""

    bundle: Bundle
    captures: tuple[Capture, ...]  # those that were asked, in that order
    answers: Answers
    info: ServerInfo | None
    loads: tuple[Loads, ...]  # in the order in which they were asked
    scrapes: tuple[Scrape, ...]  # in the order in which they were asked
    progress: Progress
    frontend: str
    latency: Mapping[str, Any]
    work_done: Mapping[str, Any] | None
    baseline: Mapping[str, Any] = field(default_factory=dict)  # of the last healthy bundle
    one_server: bool = True  # as far as the answers show; see ``apart``

    @property
    def healthy_load(self) -> Mapping[str, Any]:
        """The last healthy bundle, unless it was idle: that says nothing of load."""
        return {} if self.baseline.get("idle") is True else self.baseline

    def capture(self, *names: str) -> Capture | None:
        """The first of *names* that was asked."""
        return next((one for name in names for one in self.captures if one.name == name), None)

    @property
    def load(self) -> Loads | None:
        """The last answer about load; the one with all sections where there is a choice."""
        full = tuple(one for one in self.loads if one.artifact.startswith("loads_all"))
        return next(reversed(full or self.loads), None)

    @property
    def exposition(self) -> Exposition | None:
        """The last reading of /metrics."""
        return self.scrapes[-1].exposition if self.scrapes else None

    @property
    def dp_size(self) -> int | None:
        """How many DP ranks the server says it has; a Rust ingress speaks for its own alone."""
        if self.info is not None and self.info.frontend != "rust":
            return self.info.dp_size
        return None

    @property
    def version(self) -> str | None:
        told = self.info.version if self.info else None
        return told or next((one.version for one in self.loads if one.version), None)

    def gauge(self, name: str) -> float | None:
        """A gauge of the last scrape, all series together; None when it is not told."""
        return None if self.exposition is None else total(self.exposition, name)

    def usage(self) -> tuple[float, Evidence] | None:
        """The fullest pool of KV tokens (share, 0 to 1) and where that is told.

        Hybrid models have several pools, and ``token_usage`` alone misleads there.
        """
        told: list[tuple[float, Evidence]] = []
        load = self.load
        for rank in load.ranks if load else ():
            if load and rank.token_usage is not None:
                place = f"{rank.place}/token_usage"
                told.append((rank.token_usage, evidence(load.artifact, place, rank.token_usage)))
        if not told or len(told) == 1:
            told += self._pools()
        return max(told, key=lambda one: one[0], default=None)

    def _pools(self) -> list[tuple[float, Evidence]]:
        """The gauges of the pools: only where one rank tells them, as shares do not add up."""
        return [
            (share, evidence(self.scrapes[-1].artifact, name, share))
            for name in USAGE_GAUGES
            if (share := self.gauge(name)) is not None and 0 <= share <= 1
        ]


def evidence(capture_name: str, at: str, value: object = None) -> Evidence:
    """A place in a capture, which is named as in its bundle."""
    return Evidence(capture_name, at, value)


def observe(bundle: Bundle, baseline: Mapping[str, Any] | None = None) -> Observed:
    """*bundle* read; *baseline* is the summary of the target's last healthy bundle."""
    captures = tuple(in_order_asked(bundle.captures))
    answers = read_answers(bundle)
    named = answers.first("server_info", "get_server_info")
    scrapes = tuple(_scrapes(captures))
    loads = tuple(_loads(captures, answers))
    moved = progress(scrapes, comparable(loads), bundle.interval_seconds)
    return Observed(
        bundle=bundle,
        captures=captures,
        answers=answers,
        info=read_server_info(*named) if named else None,
        loads=loads,
        scrapes=scrapes,
        progress=moved,
        frontend=ingress({one.name: one for one in captures}),
        latency=_latency(scrapes, moved),
        work_done=None if moved.fell else work_done(comparable(loads)),
        baseline=baseline or {},
    )


def apart(observed: Observed) -> Observed:
    """*observed* without what compares two looks: they are known not to be of one server."""
    moved = progress(observed.scrapes[-1:], comparable(observed.loads)[-1:])
    told = latency(observed.scrapes[-1:], None)
    return replace(observed, progress=moved, latency=told, work_done=None, one_server=False)


def _latency(scrapes: Sequence[Scrape], moved: Progress) -> dict[str, Any]:
    """Of the window, or of the last scrape alone where a counter fell in between."""
    told = scrapes[-1:] if moved.fell else scrapes
    return latency(told, moved.window_seconds)


def _scrapes(captures: Sequence[Capture]) -> list[Scrape]:
    return [
        Scrape(
            one.name,
            parse(one.body, wanted=_WANTED),
            one.started_at.timestamp() if one.started_at else None,
        )
        for one in captures
        if one.name in _SCRAPES and one.outcome is Outcome.ANSWERED and one.status == 200
    ]


def _loads(captures: Sequence[Capture], answers: Answers) -> list[Loads]:
    return [
        found
        for one in captures
        if one.name in _LOADS and one.name in answers.values
        if (found := read_loads(one.name, answers.values[one.name])) is not None
    ]


def comparable(loads: Sequence[Loads]) -> list[Loads]:
    """The answers that may be set against each other: of one endpoint, in the order of asking."""
    new = [one for one in loads if one.artifact != "get_load"]
    new.sort(key=lambda one: one.asked_at or 0.0)
    return new or list(loads)


def model(observed: Observed) -> dict[str, Any]:
    """Which model answers. /model_info tells it live, /server_info as it was started."""
    named = observed.answers.first("model_info", "get_model_info")
    live = named[1] if named and isinstance(named[1], Mapping) else {}
    started = observed.info.arguments if observed.info else {}
    names = ("model_path", "served_model_name", "weight_version", "load_format", "model_type")
    found = {name: text(live.get(name)) or text(started.get(name)) for name in names}
    generation = live.get("is_generation")
    return {**found, "is_generation": generation if isinstance(generation, bool) else None}
