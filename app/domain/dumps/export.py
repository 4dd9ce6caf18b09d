"""One line of JSON for a request, at a tier: what ``dump export`` writes and replay reads."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.domain.dumps.logprobs import logprobs_of
from app.domain.dumps.recorded import RecordedRequest, row
from app.domain.dumps.redacted import Tier, at_tier
from app.domain.dumps.scalars import escaped
from app.domain.dumps.shape import shape_of
from app.domain.figures import figure, table
from app.domain.pickled.values import text_of
from app.domain.redaction import Fingerprint

PREVIEW_CHARACTERS = 200
# The server set these for itself: in no payload that is sent again.
_OWN_OF_SERVER = ("is_single", "batch_size", "parallel_sample_num", "received_time", "rid")


def shown(request: RecordedRequest, tier: Tier, fingerprint: Fingerprint) -> dict[str, Any]:
    """*request* as a summary lists it: its row, above T0 with the beginning of its prompt."""
    listed: dict[str, Any] = {**row(request)}
    if tier != "T0":
        listed["preview"] = _preview(request.payload, tier, fingerprint)
    return listed


def entry(request: RecordedRequest, tier: Tier, fingerprint: Fingerprint) -> dict[str, Any]:
    """*request* as the interface has it (JSONL of requests); T0 has neither words nor ids."""
    told: dict[str, Any] = {
        "index": request.index,
        "rid": request.rid,
        "started_at": moment(request.started_at),
        "finished_at": moment(request.finished_at),
        "endpoint": request.endpoint,
        "tier": tier,
        "payload": _payload(request, tier, fingerprint),
    }
    if request.state is not None:
        told["recorded"] = _recorded(request, tier, fingerprint)
    return told


def moment(seconds: float | None) -> str | None:
    """RFC 3339 in UTC, to the microsecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _preview(payload: Mapping[str, Any], tier: Tier, fingerprint: Fingerprint) -> str | None:
    """The beginning of the prompt, safe to print; None where the payload has no text."""
    text = text_of(payload.get("text")) or text_of(payload.get("prompt"))
    if text is None:
        return None
    safe: str = at_tier(text[: 4 * PREVIEW_CHARACTERS], tier, fingerprint)
    return escaped(safe, PREVIEW_CHARACTERS)


def _payload(request: RecordedRequest, tier: Tier, fingerprint: Fingerprint) -> Mapping[str, Any]:
    if tier == "T0":
        return shape_of(request, fingerprint)
    fields = {
        name: value
        for name, value in request.payload.items()
        if value is not None and name not in _OWN_OF_SERVER
    }
    payload: Mapping[str, Any] = at_tier(fields, tier, fingerprint)
    return payload


def _recorded(request: RecordedRequest, tier: Tier, fingerprint: Fingerprint) -> dict[str, Any]:
    started, seen = request.started_at, request.seen_at
    meta = table(request.output.get("meta_info"))
    finished = request.state == "finished"
    elapsed = seen - started if started is not None and seen is not None else None
    recorded: dict[str, Any] = {
        "state": request.state,
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.completion_tokens,
        "cached_tokens": request.cached_tokens,
        "ttft_seconds": figure(meta.get("first_token_latency")),
        "e2e_seconds": (figure(meta.get("e2e_latency")) or elapsed) if finished else None,
        "finish_reason": request.finish_reason,
    }
    if request.state == "unfinished":
        recorded["elapsed_seconds"] = elapsed  # until the dump was written
    if tier != "T0":
        kept = {
            name: request.output[name] for name in ("text", "output_ids") if name in request.output
        }
        recorded["output"] = at_tier(kept, tier, fingerprint)
        if (logprobs := logprobs_of(request.output)) is not None:
            recorded["output"]["output_logprobs"] = logprobs
    return recorded
