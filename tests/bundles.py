"""Makers of bundles: a default for everything, so that a test names only what it is about."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from app.domain.capture import Bundle, Capture, Outcome

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PATHS = {
    "loads_all_1": "/v1/loads?include=all",
    "loads_all_2": "/v1/loads?include=all",
    "loads_core_1": "/v1/loads?include=core,queues,disagg,spec",
    "metrics_1": "/metrics",
    "metrics_2": "/metrics",
    "hicache": "/hicache/storage-backend",
}


def bundle(*captures: Capture, after_seconds: float = 0.0) -> Bundle:
    """The captures as one bundle, collected *after_seconds* past noon."""
    return Bundle("http://chat:30000", NOON + timedelta(seconds=after_seconds), captures)


def answered(
    name: str,
    body: Any = b"",
    *,
    status: int = 200,
    at: float | None = 0.0,
    seconds: float = 0.01,
    headers: Mapping[str, str] | None = None,
    redacted: Sequence[str] = (),
) -> Capture:
    """An answer to the capture *name*, asked *at* seconds past noon; None has no time."""
    return Capture(
        name=name,
        path=PATHS.get(name, f"/{name}"),
        outcome={401: Outcome.NO_ACCESS, 403: Outcome.NO_ACCESS, 404: Outcome.NOT_OFFERED}.get(
            status, Outcome.ANSWERED
        ),
        status=status,
        started_at=None if at is None else NOON + timedelta(seconds=at),
        seconds=seconds,
        body=body if isinstance(body, bytes) else orjson.dumps(body),
        headers=dict(headers or {}),
        redacted=tuple(redacted),
    )


def silent(
    name: str,
    outcome: Outcome = Outcome.TIMEOUT,
    *,
    at: float | None = 0.0,
    seconds: float = 5.0,
) -> Capture:
    """No answer to the capture *name*."""
    return Capture(
        name=name,
        path=PATHS.get(name, f"/{name}"),
        outcome=outcome,
        started_at=None if at is None else NOON + timedelta(seconds=at),
        seconds=seconds,
    )


def rank(dp_rank: int = 0, *, age: float = 0.01, at: float = 0.0, **figures: Any) -> dict[str, Any]:
    """One entry of /v1/loads, published *age* seconds before *at* (seconds past noon)."""
    return {
        "timestamp": NOON.timestamp() + at - age,
        "dp_rank": dp_rank,
        "num_running_reqs": 0,
        "num_waiting_reqs": 0,
        "max_total_num_tokens": 1000,
        "token_usage": 0.1,
        "gen_throughput": 0.0,
        **figures,
    }


def loads(*ranks: Mapping[str, Any], at: float = 0.0, **more: Any) -> dict[str, Any]:
    """The body of /v1/loads, answered *at* seconds past noon."""
    moment = NOON + timedelta(seconds=at)
    return {"timestamp": moment.isoformat(), "version": "0.5.23", "loads": list(ranks), **more}


def metrics(**values: float) -> bytes:
    """The body of /metrics: each name gets the prefix ``sglang:`` and one series."""
    lines = [f'sglang:{name}{{model_name="m"}} {value}' for name, value in values.items()]
    return ("\n".join(lines) + "\n").encode()


def histogram(name: str, count: int, total: float, **buckets: int) -> bytes:
    """One histogram of /metrics; a bucket is named by its bound: ``le_0_5=3``."""
    bounds = {key.removeprefix("le_").replace("_", "."): value for key, value in buckets.items()}
    lines = [f'sglang:{name}_bucket{{le="{le}"}} {value}' for le, value in bounds.items()]
    lines += [
        f'sglang:{name}_bucket{{le="+Inf"}} {count}',
        f"sglang:{name}_count {count}",
        f"sglang:{name}_sum {total}",
    ]
    return ("\n".join([f"# TYPE sglang:{name} histogram", *lines]) + "\n").encode()


SERVER_INFO: dict[str, Any] = {
    "model_path": "/models/r1",
    "tp_size": 1,
    "dp_size": 1,
    "version": "0.5.23",
    "frontend": "python",
    "internal_states": [{"last_gen_throughput": 10.0}],
}


def serving(
    *ranks: Mapping[str, Any], info: Mapping[str, Any] | None = None, ready: int = 200
) -> list[Capture]:
    """The answers of a server that answers everything but a probe."""
    return [
        answered("ready", status=ready),
        answered("model_info", {"model_path": "/models/r1"}),
        answered(
            "server_info", {**SERVER_INFO, "dp_size": len(ranks) or 1, **(info or {})}, at=1.0
        ),
        answered("loads_all_1", loads(*ranks), at=2.0),
    ]
