"""Recorded requests out of lines of the export, which is what a replay is planned from."""

from collections.abc import Mapping

from app.domain.dumps.building import built
from app.domain.dumps.json_lines import parts_of
from app.domain.dumps.logprobs import logprobs_of
from app.domain.dumps.recorded import RecordedRequest
from app.domain.figures import figure, table
from app.domain.pickled.values import ints_of
from app.domain.plain_json import read_json
from app.domain.replay.planned import Recorded
from app.errors import Malformed


def request_of_line(line: bytes, index: int) -> RecordedRequest:
    """The request of one line of JSONL; *index* is for a line that tells none, as a bare payload.

    Raises Malformed.
    """
    value = read_json(line)
    parts = parts_of(value)
    if parts is None:
        raise Malformed("The line is no request.", fix="See the JSONL that dump export writes.")
    told = value.get("index") if isinstance(value, Mapping) and "payload" in value else None
    return built(told if type(told) is int and told >= 0 else index, parts)


def recorded_of(request: RecordedRequest) -> Recorded:
    """How *request* went when it was recorded, for the comparison.

    Times of the server itself where it was started with ``--enable-metrics``; otherwise the end
    is the time of the record less that of its arrival, and the first token is not known.
    """
    meta = table(request.output.get("meta_info"))
    return Recorded(
        state=request.state,
        prompt_tokens=request.prompt_tokens,
        completion_tokens=request.completion_tokens,
        cached_tokens=request.cached_tokens,
        ttft_seconds=_positive(meta.get("first_token_latency")),
        e2e_seconds=_e2e(request, meta),
        finish_reason=request.finish_reason,
        output_ids=ints_of(request.output.get("output_ids")),
        output_logprobs=logprobs_of(request.output),
        greedy=_greedy(request),
    )


def _greedy(request: RecordedRequest) -> bool | None:
    temperature, top_k = request.sampling.get("temperature"), request.sampling.get("top_k")
    if temperature is None and top_k is None:
        return None
    return temperature == 0 or top_k == 1


def _e2e(request: RecordedRequest, meta: Mapping[str, object]) -> float | None:
    if request.state != "finished":
        return None
    told = _positive(meta.get("e2e_latency"))
    if told is not None or request.started_at is None or request.seen_at is None:
        return told
    return _positive(request.seen_at - request.started_at)


def _positive(value: object) -> float | None:
    number = figure(value)
    return number if number is not None and number >= 0 else None
