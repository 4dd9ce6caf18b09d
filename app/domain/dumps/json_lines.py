"""Requests in JSON: lines of our own export, bare payloads, OpenAI batches, exported metrics.

A line is recognised by what it has: ``payload`` (ours), ``body`` and ``url`` (an OpenAI batch),
``request_parameters`` (SGLang's ``--export-metrics-to-file``), ``messages`` or ``prompt`` (OpenAI
routes), ``text``, ``input_ids`` or ``input_embeds`` (``/generate``), ``input`` (embeddings).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, get_args

import orjson

from app.domain.dumps.building import Parts, built
from app.domain.dumps.features import FEATURES
from app.domain.dumps.problems import Problems
from app.domain.dumps.recorded import Dump, Endpoint, RecordedRequest
from app.domain.dumps.scalars import escaped
from app.domain.dumps.source import States
from app.domain.figures import epoch_seconds, figure, table
from app.domain.plain_json import read_json
from app.errors import Malformed

MAX_LINE_BYTES = 64 * 1024 * 1024
_LONGEST_ROUTE = 80
_ENDPOINTS: tuple[Endpoint, ...] = get_args(Endpoint)
_GENERATE = ("text", "input_ids", "input_embeds", "image_data")
_SAMPLING = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "n", "seed",
             "presence_penalty", "frequency_penalty", "top_k", "min_p", "ignore_eos")  # fmt: skip


class JsonLines:
    """JSON values, one a line, as a source of requests; *lines* starts again from the first."""

    def __init__(self, lines: Callable[[], Iterable[bytes]], form: str = "JSON lines") -> None:
        self._lines, self._form = lines, form
        self._problems = Problems()
        self._read = self._seen = 0

    def requests(self, wanted: Container[int] | None = None) -> Iterator[RecordedRequest]:
        index = 0
        for number, line in enumerate(self._lines(), start=1):
            if not (line := line.strip()):
                continue
            self._seen += 1
            parts = self._parts(number, line)
            if parts is None:
                continue
            if wanted is None or index in wanted:
                self._read += 1
                yield built(index, parts)
            index += 1

    def dump(self, states: States) -> Dump:
        told = self._problems.told()
        if self._read:
            return Dump("requests", self._form, problems=told)
        why = "No line of it is a request." if self._seen else "There is nothing in it."
        return Dump("unreadable", self._form, problems=(why, *told))

    def _parts(self, number: int, line: bytes) -> Parts | None:
        if len(line) > MAX_LINE_BYTES:
            self._problems.add(f"Line {number} was left out: it is too long.")
            return None
        try:
            parts = parts_of(read_json(line))
        except Malformed as error:
            self._problems.add(f"Line {number} was left out: {error.what}")
            return None
        if parts is None:
            self._problems.add(f"Line {number} was left out: it is no request.")
        return parts


def parts_of(value: object) -> Parts | None:
    """The request that one JSON *value* is; None when it is none.

    Raises Malformed for one of a route that has other requests, as ``/v1/score``.
    """
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("payload"), Mapping):
        return _exported(value)
    if isinstance(value.get("request_parameters"), str):
        return _of_metrics(value)
    if isinstance(value.get("body"), Mapping):
        return _of_batch(value)
    endpoint = _endpoint(value)
    return None if endpoint is None else Parts(_with_sampling(value), endpoint=endpoint, sent=False)


def _told_endpoint(told: object) -> Endpoint | None:
    """The route that a line tells; None where it tells none, or OpenAI's for embeddings."""
    if not isinstance(told, str) or not told or told == "/v1/embeddings":
        return None
    found = next((endpoint for endpoint in _ENDPOINTS if endpoint == told), None)
    if found is None:
        raise Malformed(f"It is for {escaped(told, _LONGEST_ROUTE)}, whose requests are not known.")
    return found


def _endpoint(payload: Mapping[str, Any]) -> Endpoint | None:
    if isinstance(payload.get("messages"), list):
        return "/v1/chat/completions"
    if any(payload.get(name) is not None for name in _GENERATE):
        return "/generate"
    if payload.get("prompt") is not None:
        return "/v1/completions"
    return "/encode" if payload.get("input") is not None else None


def _with_sampling(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """OpenAI routes have sampling parameters beside the prompt; here they are a table of their own.

    The payload itself stays as it is for whoever sends it again.
    """
    if "sampling_params" in payload or not any(name in payload for name in _SAMPLING):
        return payload
    return {**payload, "sampling_params": {k: payload[k] for k in _SAMPLING if k in payload}}


def _exported(value: Mapping[str, Any]) -> Parts | None:
    """A line of our own: see the interface, JSONL of requests."""
    payload = value["payload"]
    endpoint = _told_endpoint(value.get("endpoint")) or _endpoint(payload) or "/generate"
    recorded = table(value.get("recorded"))
    output = {**table(recorded.get("output")), "meta_info": _meta(recorded)} if recorded else None
    started, ended = _moment(value.get("started_at")), _moment(value.get("finished_at"))
    if recorded and recorded.get("state") == "unfinished":
        output = {}
        elapsed = figure(recorded.get("elapsed_seconds"))
        if isinstance(started, int | float) and elapsed is not None:
            ended = started + elapsed
    rid = value.get("rid")
    return Parts(
        payload if rid is None or "rid" in payload else {**payload, "rid": rid},
        output,
        started,
        ended,
        endpoint,
        sent=recorded.get("state") is not None,
        features=tuple(one for one in FEATURES if one in (payload.get("features") or ())),
    )


_TIMES = (("ttft_seconds", "first_token_latency"), ("e2e_seconds", "e2e_latency"))


def _meta(recorded: Mapping[str, Any]) -> dict[str, Any]:
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    reason = recorded.get("finish_reason")
    if recorded.get("state") == "aborted":
        reason = "abort"
    told = {name: recorded.get(name) for name in names}
    told |= {meta: recorded[name] for name, meta in _TIMES if recorded.get(name) is not None}
    return {**told, "finish_reason": reason} if reason is not None else told


def _of_batch(value: Mapping[str, Any]) -> Parts | None:
    """A line of an OpenAI batch file."""
    payload = value["body"]
    endpoint = _told_endpoint(value.get("url")) or _endpoint(payload)
    if endpoint is None:
        return None
    rid = value.get("custom_id")
    named = {**payload, "rid": rid} if isinstance(rid, str) else payload
    return Parts(_with_sampling(named), endpoint=endpoint, sent=False)


def _of_metrics(value: Mapping[str, Any]) -> Parts | None:
    """A line of ``--export-metrics-to-file``: parameters as JSON in a string, then meta_info."""
    try:
        payload = orjson.loads(value["request_parameters"])
    except orjson.JSONDecodeError:
        return None
    if not isinstance(payload, dict):
        return None
    meta = {name: told for name, told in value.items() if name != "request_parameters"}
    started, elapsed = figure(meta.get("request_received_ts")), figure(meta.get("e2e_latency"))
    ended = figure(meta.get("request_finished_ts"))
    if ended is None and started is not None and elapsed is not None:
        ended = started + elapsed
    return Parts({"rid": meta.get("id"), **payload}, {"meta_info": meta}, started, ended)


def _moment(value: object) -> object:
    """Our own lines have times as RFC 3339; anything else stays as it is, to be judged."""
    return epoch_seconds(value) if isinstance(value, str) else value
