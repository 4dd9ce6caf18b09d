"""One request from its parts, whatever kind of file they stood in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.dumps.containers import table_in
from app.domain.dumps.features import FEATURES, features_of
from app.domain.dumps.outcome import outcome_of
from app.domain.dumps.prompts import prompt_characters, prompt_tokens, rid_and_batch
from app.domain.dumps.recorded import Endpoint, RecordedRequest
from app.domain.dumps.scalars import Looked, kind_of

_NOTHING: Mapping[str, Any] = {}


@dataclass(slots=True)
class Parts:
    """What a file has of one request. *sent*: whether it tells that a server ever had it.

    *created* and *ended* are seconds since 1970 as the file has them, of whatever kind.
    """

    payload: Mapping[str, Any]
    output: object = None
    created: object = None
    ended: object = None
    endpoint: Endpoint = "/generate"
    sent: bool = True
    features: tuple[str, ...] = ()  # that the file tells of a request whose payload it keeps back
    looked: Looked = field(default_factory=Looked)


def built(index: int, parts: Parts) -> RecordedRequest:
    """The request that *parts* make; what is unusable in them is None and a problem."""
    looked, payload = parts.looked, parts.payload
    output = _NOTHING if parts.output is None else table_in(parts.output)
    if output is None:
        looked.problems.append(f"the output is no table ({kind_of(parts.output)})")
    outcome = outcome_of(output or _NOTHING, looked)
    state = outcome.state if parts.sent and output is not None else None
    started_at = looked.moment("the time it was created", parts.created)
    seen_at = looked.moment("the time it finished", parts.ended)
    if started_at is not None and seen_at is not None and seen_at < started_at:
        looked.problems.append("it finished before it was created")
        seen_at = None
    rid, batch = rid_and_batch(payload, looked)
    embedding = parts.endpoint == "/encode"
    return RecordedRequest(
        index=index,
        rid=rid,
        endpoint=parts.endpoint,
        state=state,
        started_at=started_at,
        finished_at=seen_at if state in ("finished", "aborted") else None,
        seen_at=seen_at,
        prompt_tokens=prompt_tokens(payload, outcome.prompt_tokens),
        completion_tokens=outcome.completion_tokens,
        cached_tokens=outcome.cached_tokens,
        prompt_characters=prompt_characters(payload),
        stream=looked.switch("stream", payload.get("stream")),
        finish_reason=outcome.finish_reason,
        sampling=looked.sampling(payload.get("sampling_params")),
        features=_both(features_of(payload, batch=batch, embedding=embedding), parts.features),
        problems=tuple(looked.problems),
        payload=payload,
        output=output or _NOTHING,
    )


def _both(seen: tuple[str, ...], told: tuple[str, ...]) -> tuple[str, ...]:
    """The features of the payload and those that the file tells, in their order."""
    if not told:
        return seen
    return tuple(one for one in FEATURES if one in seen or one in told)
