"""Rules about time: where a request spends it, in the window between two scrapes."""

from collections.abc import Mapping
from typing import Any

from app.domain.claims import Claim, Level, Status
from app.domain.figures import figure, table
from app.domain.observed import Observed, evidence
from app.domain.signals.ruling import NotChecked, Quiet, Ruling

_FEWEST = 3  # first tokens in the window
_SLOW_SECONDS = 2.0  # only where no healthy bundle says what is slow
_TIMES_HEALTHY = 2.0
_MORE_SECONDS = 0.2  # under this a doubling is the grain of the buckets (0.1 s)
_SHORT_SHARE = 0.2  # of the time to the first token
_TTFT = "sglang:time_to_first_token_seconds"
_QUEUE = "sglang:queue_time_seconds"


def ttft_high_queue_short(seen: Observed) -> Ruling:
    """First tokens are late, and it is not the queue that makes them wait."""
    rule = "ttft-high-queue-short"
    ttft, queue = table(seen.latency.get("ttft")), table(seen.latency.get("queue"))
    mean, count = figure(ttft.get("mean")), figure(ttft.get("n"))
    if mean is None or not count or count < _FEWEST:
        return NotChecked(rule, "Fewer than 3 first tokens between two scrapes of /metrics.")
    waited = _waited(seen, queue)
    if waited is None:
        return NotChecked(rule, "How long requests queued is not told.")
    last = seen.scrapes[-1].artifact
    proof = (evidence(last, _TTFT, dict(ttft)), evidence(last, _QUEUE, dict(queue) or "0 waiting"))
    healthy = figure(table(table(seen.healthy_load.get("latency")).get("ttft")).get("mean"))
    if not _slow(mean, healthy) or waited > _SHORT_SHARE * mean:
        return Quiet(
            rule, f"First tokens after {mean:.2f} s on average, {waited:.2f} s queued.", proof
        )
    against = (
        f"{healthy:.2f} s when healthy"
        if healthy is not None
        else "no healthy bundle to compare with"
    )
    says = (
        f"First tokens took {mean:.2f} s on average ({against}, {count:.0f} in the window), of "
        f"which {waited:.2f} s in the queue: the time goes elsewhere.{_slowest(seen.latency)}"
    )
    status = Status.SUPPORTED if healthy is not None else Status.HYPOTHESIS
    return Claim(rule, says, status, proof, Level.WARN)


def _waited(seen: Observed, queue: Mapping[str, Any]) -> float | None:
    """Mean seconds in the queue; 0 where nothing waited at the last look and no histogram tells."""
    mean = figure(queue.get("mean"))
    if mean is not None:
        return mean
    load = seen.load
    waiting = load.total("waiting", seen.dp_size) if load else seen.gauge("sglang:num_queue_reqs")
    return 0.0 if waiting == 0 else None


def _slow(mean: float, healthy: float | None) -> bool:
    if healthy is None:
        return mean >= _SLOW_SECONDS
    return mean > _TIMES_HEALTHY * healthy and mean > healthy + _MORE_SECONDS


def _slowest(latency: Mapping[str, Any]) -> str:
    """The stage that took longest on average, if stages are told."""
    stages = table(latency.get("stages"))
    means = {name: figure(table(one).get("mean")) for name, one in stages.items()}
    known = {name: mean for name, mean in means.items() if mean}
    if not known:
        return ""
    name = max(known, key=lambda one: known[one])
    return f" Longest stage: {name}, {known[name]:.2f} s."


RULES = (ttft_high_queue_short,)
