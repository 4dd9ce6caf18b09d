"""Recorded requests and outcomes of a replay, made of as little as a test wants to say."""

from collections.abc import Mapping
from typing import Any

from app.domain.dumps.building import Parts, built
from app.domain.dumps.recorded import RecordedRequest
from app.domain.replay.outcomes import ErrorClass, Outcome
from app.domain.replay.planned import Recorded
from app.domain.replay.tally import Tally, Trial

BEGAN = 1_764_500_000.0  # seconds since 1970


def recorded_request(
    index: int = 0,
    payload: Mapping[str, Any] | None = None,
    *,
    at: float | None = 0.0,
    took: float | None = 1.0,
    **parts: Any,
) -> RecordedRequest:
    """A request that came *at* seconds after the first, and took as many; None: not known."""
    created = None if at is None else BEGAN + at
    output = {
        "text": "said",
        "output_ids": [5, 6, 7],
        "meta_info": {
            "finish_reason": {"type": "stop"}, "prompt_tokens": 3, "completion_tokens": 3,
        },
    }  # fmt: skip
    asked = {"rid": f"rid-{index}", "input_ids": [1, 2, 3], "stream": True}
    told: dict[str, Any] = {
        "payload": asked if payload is None else payload,
        "output": output,
        "created": created,
        "ended": None if created is None or took is None else created + took,
    }
    return built(index, Parts(**{**told, **parts}))


def outcome(index: int = 0, error: ErrorClass | None = None, **told: Any) -> Outcome:
    """How a request went that was sent as many seconds after the start as its index says.

    It took 0.5 s, unless *told* otherwise.
    """
    usual: dict[str, Any] = {
        "rid": f"rid-{index}",
        "status": _STATUS.get(error),
        "says": None,
        "sent_at": BEGAN + told.pop("at", float(index)),
        "due_seconds": float(index),
        "lateness_ms": 1.0,
        "e2e_seconds": 0.5,
        "ttft_seconds": None if error else 0.1,
        "completion_tokens": None if error else 3,
        "finish_reason": None if error else "stop",
    }
    return Outcome(index=index, error=error, **{**usual, **told})


_STATUS: dict[ErrorClass | None, int | None] = {
    None: 200,
    "aborted": 200,
    "stream-cut": 200,
    "timeout": 200,
    "bad-request": 400,
    "unauthorized": 401,
    "not-found": 404,
    "too-many": 429,
    "server-error": 500,
    "overloaded": 503,
    "connection-refused": None,
    "connection-reset": None,
    "no-first-token": None,
    "cancelled": None,
    "unreachable": None,
    "not-sent": None,
}

FINISHED = Recorded(
    state="finished",
    prompt_tokens=100,
    completion_tokens=3,
    cached_tokens=0,
    ttft_seconds=0.1,
    e2e_seconds=0.5,
    finish_reason="stop",
    greedy=True,
)


def trial_of(
    *outcomes: Outcome, recorded: Mapping[int, Recorded] | None = None, **around: Any
) -> Trial:
    """The trial of *outcomes*, of requests that are FINISHED unless *recorded* says otherwise."""
    tally = Tally(around.pop("planned", len(outcomes)), around.pop("mode", "open"))
    for one in outcomes:
        tally.see(one, (recorded or {}).get(one.index, FINISHED))
    return tally.trial(**around)
