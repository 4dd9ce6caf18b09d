"""Rules about work: queues, KV cache, ranks that differ, captures in which nothing happened.

"High" is high against this target's last healthy bundle; without one it is a hypothesis.
"""

from collections.abc import Sequence
from typing import Any

from app.domain.claims import Claim, Evidence, Level, Status
from app.domain.counting import counted
from app.domain.figures import figure, table, whole
from app.domain.loads import STALE_SECONDS, RankLoad
from app.domain.observed import Observed, evidence
from app.domain.signals.ruling import NotChecked, Quiet, Ruling

_FEW_WAITING = 4  # fewer are the ordinary gap between arrival and the next batch
_TIMES_HEALTHY = 2.0
_FULL = 0.9  # share of KV tokens; SGLang retracts when the pool is full
_FULLER_THAN_HEALTHY = 0.1
_SKEW_TIMES = 3.0
_SKEW_REQUESTS = 8
_SKEW_TOKENS_PER_SECOND = 20.0
_FEW_RUNNING = 2
_HELD_USAGE = 0.5


def idle(seen: Observed) -> bool | None:
    """Whether nothing happened: all ranks known, fresh and empty, and no request moved.

    None where that is not known; a stale snapshot knows nothing of now.
    """
    moved, load = seen.progress.requests_moved, seen.load
    if moved or seen.progress.work:
        return False
    if load is None:
        empty = seen.progress.work is False and moved is False
        return True if empty and not seen.progress.fell else None
    both = (load.total("running", seen.dp_size), load.total("waiting", seen.dp_size))
    fresh = load.live or (load.oldest_seconds is not None and load.oldest_seconds < STALE_SECONDS)
    alive = fresh or (
        load.oldest_seconds is None and seen.info is not None and bool(seen.info.ranks)
    )
    return True if both == (0, 0) and alive else None


def idle_capture(seen: Observed) -> Ruling:
    """Nothing ran, waited or finished while the bundle was taken."""
    rule, state = "idle-capture", idle(seen)
    if state is None:
        return NotChecked(rule, "Whether requests ran is not known.")
    proof = _per_rank(seen, "num_running_reqs", "running", "sglang:num_running_reqs")
    if not state:
        running = _count(seen, "running", "sglang:num_running_reqs")
        waiting = _count(seen, "waiting", "sglang:num_queue_reqs")
        parts = [f"{n} {word}" for n, word in ((running, "running"), (waiting, "waiting")) if n]
        return Quiet(rule, f"{', '.join(parts) or 'requests came and went'}.", proof)
    says = (
        "Taken while nothing ran: 0 running, 0 waiting on every rank. It says nothing of latency "
        "or load. Collect again under traffic, or save a dump and replay."
    )
    return Claim(rule, says, Status.ESTABLISHED, proof, Level.NOTE)


def queue_build_up(seen: Observed) -> Ruling:
    """More requests wait than this target's last healthy bundle saw, or than run."""
    rule, load = "queue-build-up", seen.load
    waiting = _count(seen, "waiting", "sglang:num_queue_reqs")
    running = _count(seen, "running", "sglang:num_running_reqs")
    if waiting is None:
        return NotChecked(rule, "How many requests wait is not known for every rank.")
    proof = _per_rank(seen, "num_waiting_reqs", "waiting", "sglang:num_queue_reqs")
    healthy = whole(table(table(seen.healthy_load.get("load")).get("totals")).get("waiting"))
    limit = _TIMES_HEALTHY * healthy if healthy is not None else float(running or 0)
    wait = counted(waiting, "request waits", "requests wait")
    if waiting < _FEW_WAITING or waiting <= limit:
        few = waiting < _FEW_WAITING
        return Quiet(
            rule, f"{counted(waiting, 'request waits', 'requests wait')}.", proof, rules_out=few
        )
    against = (
        f"against {healthy} in the last healthy bundle"
        if healthy is not None
        else f"with {'an unknown number' if running is None else running} running; there is no "
        "healthy bundle to compare with"
    )
    old = load is not None and (load.oldest_seconds or 0.0) >= STALE_SECONDS
    dated = " These figures are of an old snapshot." if old else ""
    says = f"{wait} {against}.{dated}"
    return Claim(rule, says, _status(healthy is not None), proof, Level.WARN)


def _status(compared: bool) -> Status:  # noqa: FBT001 - the one thing that decides
    return Status.SUPPORTED if compared else Status.HYPOTHESIS


def _count(seen: Observed, name: str, gauge: str) -> int | None:
    """Of all ranks, from /v1/loads; from the gauge of /metrics only where loads were not told."""
    if seen.load is not None:
        return seen.load.total(name, seen.dp_size)
    told = seen.gauge(gauge)
    return None if told is None else int(told)


def _per_rank(seen: Observed, key: str, name: str, gauge: str) -> tuple[Evidence, ...]:
    load = seen.load
    if load is not None:
        return tuple(
            evidence(load.artifact, f"{rank.place}/{key}", getattr(rank, name))
            for rank in load.ranks[:8]
        )
    return tuple(evidence(one.artifact, gauge, seen.gauge(gauge)) for one in seen.scrapes[-1:])


def kv_pressure(seen: Observed) -> Ruling:
    """The KV cache is nearly full."""
    rule, told = "kv-pressure", seen.usage()
    if told is None:
        return NotChecked(rule, "How full the KV cache is was not told.")
    usage, proof = told
    healthy = figure(table(seen.healthy_load.get("load")).get("token_usage_max"))
    if usage < _FULL:
        return Quiet(rule, f"KV cache {usage:.0%} used at most, limit {_FULL:.0%}.", (proof,))
    if healthy is not None and usage < healthy + _FULLER_THAN_HEALTHY:
        return Quiet(rule, f"KV cache {usage:.0%} used, as in the last healthy bundle.", (proof,))
    against = (
        "no healthy bundle to compare with" if healthy is None else f"{healthy:.0%} when healthy"
    )
    says = (
        f"KV cache {usage:.0%} used ({against}): new requests wait and running ones are retracted."
    )
    return Claim(rule, says, _status(healthy is not None), (proof,), Level.WARN)


def retraction(seen: Observed) -> Ruling:
    """Requests were thrown out of the running batch for lack of KV cache."""
    rule, name = "retraction", "sglang:num_retracted_requests_total"
    move = next((one for one in seen.progress.moves if one.name == name), None)
    queued = _retracted(seen.load.ranks if seen.load else ())
    if move is None and queued is None:
        return NotChecked(
            rule, "No counter of retracted requests in two scrapes, no queue of them."
        )
    proof = [evidence(move.artifact, move.at, move.as_json())] if move else []
    if seen.load and queued is not None:
        proof.append(evidence(seen.load.artifact, "/loads/*/queues/retracted", queued))
    if not queued and not (move and move.difference):
        where = "was retracted in the window" if move else "that was retracted waits"
        return Quiet(rule, f"No request {where}.", tuple(proof))
    counted = (
        f"{move.difference:.0f} in the window" if move and move.difference else "none counted yet"
    )
    says = (
        f"Requests were retracted for lack of KV cache ({counted}, {queued or 0} queued again); "
        "each is computed anew."
    )
    return Claim(rule, says, Status.ESTABLISHED, tuple(proof), Level.WARN)


def _retracted(ranks: Sequence[RankLoad]) -> int | None:
    known = [whole(table(rank.queues).get("retracted")) for rank in ranks]
    counts = [value for value in known if value is not None]
    return sum(counts) if counts else None


def rank_skew(seen: Observed) -> Ruling:
    """One DP rank has far more work than another, or is far slower."""
    rule, load = "rank-skew", seen.load
    work = [
        (rank.running + rank.waiting, rank)
        for rank in (load.ranks if load else ())
        if rank.running is not None and rank.waiting is not None
    ]
    if len(work) > 1 and load is not None:
        return _skew_of_work(rule, load.artifact, work)
    return _skew_of_throughput(rule, seen)


def _skew_of_work(rule: str, artifact: str, work: list[tuple[int, RankLoad]]) -> Ruling:
    (most, heavy), (least, light) = (
        max(work, key=lambda one: (one[0], one[1].dp_rank)),
        min(work, key=lambda one: (one[0], one[1].dp_rank)),
    )
    proof = tuple(
        evidence(artifact, f"{rank.place}/{key}", value)
        for rank in (heavy, light)
        for key, value in (("num_running_reqs", rank.running), ("num_waiting_reqs", rank.waiting))
    )
    waits = [rank for _, rank in work if rank.waiting]
    alone = len(waits) == 1 and (waits[0].waiting or 0) >= _FEW_WAITING
    if not alone and (most < _SKEW_REQUESTS or most < _SKEW_TIMES * max(least, 1)):
        return Quiet(rule, f"{len(work)} ranks hold {least} to {most} requests.", proof)
    only = f" Requests wait at DP{waits[0].dp_rank} alone." if alone else ""
    says = f"DP{heavy.dp_rank} holds {most} requests, DP{light.dp_rank} {least}.{only}"
    return Claim(rule, says, Status.SUPPORTED, proof, Level.WARN)


def _skew_of_throughput(rule: str, seen: Observed) -> Ruling:
    """From /server_info where /v1/loads does not tell two ranks."""
    states = [one for one in seen.info.ranks if one.throughput is not None] if seen.info else []
    if len(states) < 2 or seen.info is None:
        return NotChecked(rule, "Fewer than two DP ranks are known.")
    fast = max(states, key=lambda one: one.throughput or 0.0)
    slow = min(states, key=lambda one: one.throughput or 0.0)
    high, low = fast.throughput or 0.0, slow.throughput or 0.0
    proof = tuple(
        evidence(seen.info.artifact, f"{one.place}/last_gen_throughput", one.throughput)
        for one in (fast, slow)
    )
    if high < _SKEW_TOKENS_PER_SECOND or high < _SKEW_TIMES * max(low, 1.0):
        return Quiet(rule, f"{len(states)} ranks tell {low:.1f} to {high:.1f} tokens/s.", proof)
    says = (
        f"DP{fast.dp_rank} tells {high:.1f} tokens/s, DP{slow.dp_rank} {low:.1f}, each the last "
        "value of its scheduler."
    )
    return Claim(rule, says, Status.HYPOTHESIS, proof, Level.WARN)


def partial_ranks(seen: Observed) -> Ruling:
    """Fewer DP ranks answered than the server says it has."""
    rule, expected = "partial-ranks", seen.dp_size
    if expected is None or seen.info is None:
        return NotChecked(rule, "How many DP ranks there should be is not known.")
    counts = {"/v1/loads": (len(seen.load.ranks), seen.load.artifact)} if seen.load else {}
    if seen.info.shape in ("list", "empty"):
        counts["/server_info"] = (len(seen.info.ranks), seen.info.artifact)
    short = {path: told for path, told in counts.items() if told[0] < expected}
    proof: list[Evidence] = [evidence(seen.info.artifact, "/dp_size", expected)]
    if not short:
        return Quiet(rule, f"{expected} of {expected} DP ranks answered.", tuple(proof))
    told = "; ".join(f"{count} of {expected} in {path}" for path, (count, _) in short.items())
    proof += [
        evidence(artifact, "/loads" if path == "/v1/loads" else "/internal_states", count)
        for path, (count, artifact) in short.items()
    ]
    says = f"Not every DP rank answered: {told}. Totals over ranks are unknown."
    return Claim(rule, says, Status.ESTABLISHED, tuple(proof), Level.WARN)


def sessions_held_open(seen: Observed) -> Ruling:
    """Sessions pin KV cache: much of it is used while few requests run."""
    rule = "sessions-held-open"
    arguments: Any = seen.info.arguments if seen.info else None
    usage, running = seen.usage(), _count(seen, "running", "sglang:num_running_reqs")
    if arguments is None or usage is None or running is None:
        return NotChecked(rule, "Needs the launch settings, KV use and running requests.")
    names = ("enable_session_radix_cache", "enable_streaming_session")
    on = [name for name in names if arguments.get(name) is True]
    if not on:
        return Quiet(rule, "Sessions do not hold KV cache here: both switches are off.")
    share, place = usage
    if share < _HELD_USAGE or running > _FEW_RUNNING:
        return Quiet(rule, f"KV cache {share:.0%} used with {running} running.", (place,))
    says = f"KV cache {share:.0%} used with {running} running and {on[0]} on: sessions may hold it."
    proof = (place, evidence(seen.info.artifact, f"/{on[0]}", value=True) if seen.info else place)
    return Claim(rule, says, Status.HYPOTHESIS, proof, Level.WARN)


RULES = (
    queue_build_up,
    kv_pressure,
    retraction,
    rank_skew,
    partial_ranks,
    sessions_held_open,
    idle_capture,
)
