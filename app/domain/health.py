"""From a bundle's answers to the facts of the truth table, and to a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.domain.answers import from_proxy
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.endpoints import DEEP_PROBE_SECONDS
from app.domain.exposition import total
from app.domain.health_table import TABLE, WEDGED_SECONDS, HealthFacts, Reach, Verdict, decide
from app.domain.ingress import version
from app.domain.loads import STALE_SECONDS, Loads, RankLoad
from app.domain.observed import Observed, observe

__all__ = [
    "PROBE_TIMEOUT_SECONDS",
    "TABLE",
    "HealthFacts",
    "HealthVerdict",
    "Reach",
    "Verdict",
    "health_facts",
    "passive_verdict",
    "verdict",
    "verdict_of",
]

_AT_ONCE_SECONDS = 2.0
# SGLANG_HEALTH_CHECK_TIMEOUT is 20 s; only who waited longer may say that nothing came.
PROBE_TIMEOUT_SECONDS = 20.5
_HONEST_PROBE = (0, 5, 2)  # before, /health was a constant and /health_generate stayed green
_PROBES = ("ready", "health", "health_generate")
_OPEN = frozenset((*_PROBES, "metrics_1", "metrics_2"))  # answered without a key too


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """The verdict, the row of the table that gave it, and what the health endpoints said."""

    verdict: str
    says: str
    row: str
    probes: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "says": self.says,
            "row": self.row,
            "probes": [dict(probe) for probe in self.probes],
        }


def verdict(facts: HealthFacts, probes: Sequence[Mapping[str, Any]] = ()) -> HealthVerdict:
    """What the truth table says of *facts*."""
    row = decide(facts)
    says = row.says if isinstance(row.says, str) else row.says(facts)
    return HealthVerdict(row.verdict.value, says, row.name, tuple(probes))


def verdict_of(observed: Observed) -> HealthVerdict:
    """The verdict on the server that gave *observed*, with what its health endpoints said."""
    probes = [_probe_json(one) for name in _PROBES if (one := observed.bundle.capture(name))]
    return verdict(health_facts(observed), probes)


def passive_verdict(captures: Sequence[Capture]) -> str:
    """The verdict without any probe; a probe is due only while this is undecided."""
    passive = tuple(one for one in captures if one.name not in ("health", "health_generate"))
    bundle = Bundle(base_url="", collected_at=datetime(1970, 1, 1, tzinfo=UTC), captures=passive)
    return verdict_of(observe(bundle)).verdict


def _probe_json(capture: Capture) -> dict[str, Any]:
    return {
        "name": capture.name,
        "path": capture.path,
        "outcome": capture.outcome.value,
        "status": capture.status,
        "seconds": capture.seconds,
        "detail": capture.detail,
    }


def health_facts(observed: Observed) -> HealthFacts:
    """What the truth table looks at, from the answers of one bundle."""
    load, moves = observed.load, observed.progress
    health = observed.capture("health", "health_generate")
    stuck = tuple(
        rank.dp_rank
        for rank in moves.ranks
        if rank.work and _long(rank.quiet_seconds, WEDGED_SECONDS)
    )
    return HealthFacts(
        reach=_reach(observed.captures),
        went_away=went_away(observed.captures),
        ready=_green(observed.capture("ready")),
        health_green=_green(health),
        generates=_generates(observed),
        refuses_at_once=_at_once(health),
        served_before=_served(observed),
        work=moves.work,
        moved=_moving(observed),
        fresh=_fresh(observed),
        quiet_seconds=moves.quiet_seconds,
        waiting=_waiting(observed),
        stuck_ranks=stuck if load and len(stuck) < len(load.ranks) else (),
        late_ranks=_behind(observed),
        ranks=len(load.ranks) if load else 0,
        scheduler_silent=scheduler_silent(observed),
        several_servers=not observed.one_server,
        blocked=blocked_by_loads(observed.captures) is not None,
    )


def _long(seconds: float | None, limit: float) -> bool:
    return seconds is not None and seconds >= limit


def _reach(captures: Sequence[Capture]) -> Reach:
    kinds = {_kind(one) for one in captures}
    if not kinds:
        return Reach.NOT_ASKED
    keyed = {_kind(one) for one in captures if one.name not in _OPEN}
    if Reach.CLOSED in keyed and Reach.ANSWERS not in keyed:
        return Reach.CLOSED
    order = (Reach.ANSWERS, Reach.PROXY, Reach.SILENT, Reach.BROKEN, Reach.REFUSED)
    return next(kind for kind in order if kind in kinds)


def _kind(capture: Capture) -> Reach:
    if from_proxy(capture):
        return Reach.PROXY
    return {
        Outcome.REFUSED: Reach.REFUSED,
        Outcome.TIMEOUT: Reach.SILENT,
        Outcome.ERROR: Reach.BROKEN,
        Outcome.NO_ACCESS: Reach.CLOSED,
    }.get(capture.outcome, Reach.ANSWERS)


def went_away(captures: Sequence[Capture]) -> bool:
    """Whether it answered and then refused to the end; without times any mix of both counts."""
    refused = [i for i, one in enumerate(captures) if one.outcome is Outcome.REFUSED]
    spoke = [i for i, one in enumerate(captures) if one.status is not None]
    if not refused or not spoke:
        return False
    dated = all(one.started_at for one in captures)
    return not dated or (min(spoke) < min(refused) and max(spoke) < max(refused))


def _green(capture: Capture | None) -> bool | None:
    if capture is None or from_proxy(capture):
        return None
    return {200: True, 503: False}.get(capture.status or 0)


def _generates(observed: Observed) -> bool | None:
    """Whether a probe brought a token: the best answer counts, any failure only without one."""
    found = [_probe(observed, one) for one in observed.captures if one.name in _PROBES[1:]]
    if True in found:
        return None if False in found else True
    return False if False in found else None


def _probe(observed: Observed, capture: Capture) -> bool | None:
    """One probe. A 200 proves a token only if it took as long as a probe takes."""
    seconds = capture.seconds or 0.0
    told = version({one.name: one for one in observed.captures})
    green = _green(capture)
    if green:
        deep = observed.frontend == "rust" or seconds >= DEEP_PROBE_SECONDS
        return True if deep and (told is None or told >= _HONEST_PROBE) else None
    if green is False and not _at_once(capture):
        return False
    waited = capture.outcome is Outcome.TIMEOUT and seconds >= PROBE_TIMEOUT_SECONDS
    return False if waited else None


def _at_once(capture: Capture | None) -> bool:
    return capture is not None and capture.status == 503 and _quick(capture)


def _quick(capture: Capture) -> bool:
    return capture.seconds is not None and capture.seconds < _AT_ONCE_SECONDS


def _served(observed: Observed) -> bool | None:
    if observed.exposition is None:
        return None
    finished = total(observed.exposition, "sglang:num_requests_total")
    first = total(observed.exposition, "sglang:time_to_first_token_seconds_count")
    return bool(finished or first)


def _moving(observed: Observed) -> bool | None:
    """Counters decide; without two looks, a fresh snapshot of running requests is movement.

    SGLang publishes a snapshot at every prefill and every few decode passes
    (managers/load_snapshot.py), so a fresh one with requests running was left by a pass.
    """
    if observed.progress.moved is not None or observed.progress.fell:
        return observed.progress.moved
    load = observed.load
    if load is None or not _fresh_loads(load):
        return None
    return True if any(rank.running for rank in load.ranks) else None


def _fresh(observed: Observed) -> bool | None:
    """Whether every scheduler spoke just now: by a snapshot, or in /server_info itself."""
    load = observed.load
    if load is not None and load.ranks and (load.live or load.oldest_seconds is not None):
        if load.live or _fresh_loads(load):
            return True
        return None if late_ranks(load) else False
    return True if observed.info is not None and observed.info.ranks else None


def _fresh_loads(load: Loads) -> bool:
    oldest = load.oldest_seconds
    return load.live or (oldest is not None and oldest < STALE_SECONDS)


def _behind(observed: Observed) -> tuple[int, ...]:
    still = {rank.dp_rank for rank in observed.progress.still_ranks}
    return tuple(sorted(still.union(late_ranks(observed.load))))


def late_ranks(load: Loads | None) -> tuple[int, ...]:
    """Ranks whose snapshot is old while another's is fresh."""
    ranks: tuple[RankLoad, ...] = load.ranks if load else ()
    old = [one.dp_rank for one in ranks if _long(one.age_seconds, STALE_SECONDS)]
    fresh = any(one.age_seconds is not None and one.age_seconds < STALE_SECONDS for one in ranks)
    return tuple(old) if fresh else ()


def _waiting(observed: Observed) -> int | None:
    load = observed.load
    if load is not None:
        return load.total("waiting", observed.dp_size)
    told = observed.gauge("sglang:num_queue_reqs")
    return None if told is None else int(told)


def scheduler_silent(observed: Observed) -> bool | None:
    """Whether /server_info, which waits for every scheduler, timed out beside another answer."""
    asked = observed.capture("server_info", "get_server_info")
    if asked is None:
        return None
    if asked.outcome is not Outcome.TIMEOUT:
        return False if asked.ok else None
    model = observed.capture("model_info", "get_model_info", "ready")
    return True if model is not None and model.status == 200 else None


def blocked_by_loads(captures: Sequence[Capture]) -> Capture | None:
    """The call of /v1/loads after which nothing answered any more, though something had before."""
    for position, one in enumerate(captures):
        if one.name.startswith("loads_") and one.outcome is Outcome.TIMEOUT:
            after = captures[position + 1 :]
            before = any(other.status is not None for other in captures[:position])
            silent = bool(after) and all(other.outcome is Outcome.TIMEOUT for other in after)
            return one if before and silent else None
    return None
