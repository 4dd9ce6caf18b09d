"""Requests in JSON: lines, payloads of three routes, batches, exported metrics."""

import json
from typing import Any

import pytest

from tests.dump_layouts import read

CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "image_url"}]},
    ],
    "max_tokens": 5,
    "stream": True,
    "tools": [{"type": "function"}],
}


@pytest.mark.parametrize(
    ("payload", "endpoint", "characters", "tokens", "features"),
    [
        ({"text": "hello"}, "/generate", 5, None, ()),
        ({"input_ids": [1, 2, 3], "stream": True}, "/generate", None, 3, ()),
        (CHAT, "/v1/chat/completions", 13, None, ("structured",)),
        (
            {"model": "m", "prompt": "hello", "n": 2},
            "/v1/completions",
            5,
            None,
            ("several-samples",),
        ),
        ({"prompt": ["a", "bc"]}, "/v1/completions", 3, None, ("batch",)),
        ({"prompt": [1, 2, 3, 4]}, "/v1/completions", None, 4, ()),
        ({"input": "embed", "model": "m"}, "/encode", None, None, ("embedding",)),
    ],
    ids=["text", "ids", "chat", "completion", "batch", "prompt-of-ids", "embedding"],
)
@pytest.mark.parametrize("indent", [None, 2], ids=["one-line", "pretty"])
def test_one_payload_is_a_request_that_nobody_has_sent(
    payload: dict[str, Any],
    endpoint: str,
    characters: int | None,
    tokens: int | None,
    features: tuple[str, ...],
    indent: int | None,
) -> None:
    requests, dump = read(json.dumps(payload, indent=indent).encode())
    request = requests[0]

    assert (dump.kind, dump.format, len(requests)) == ("requests", "JSON payload", 1)
    assert (request.endpoint, request.state) == (endpoint, None)
    assert (request.prompt_characters, request.prompt_tokens) == (characters, tokens)
    assert request.features == features


def test_lines_are_requests_and_the_others_are_left_out_with_their_number() -> None:
    lines = [json.dumps({"text": "a"}), "", "{broken", "[1]", json.dumps({"text": "b"})]
    requests, dump = read("\n".join(lines).encode())

    assert [one.index for one in requests] == [0, 1]
    assert dump.problems[0].startswith("Line 3 was left out: Not JSON")
    assert dump.problems[1] == "Line 4 was left out: it is no request."


def test_a_list_of_payloads_is_as_many_requests() -> None:
    requests, dump = read(json.dumps([{"text": "a"}, {"text": "b"}]).encode())

    assert (len(requests), dump.format) == (2, "JSON list of requests")


def test_a_line_of_an_openai_batch_is_its_body_on_its_route() -> None:
    line = {"custom_id": "c-1", "method": "POST", "url": "/v1/chat/completions", "body": CHAT}
    requests, _ = read(f"{json.dumps(line)}\n{json.dumps(line)}\n".encode())

    assert requests[0].endpoint == "/v1/chat/completions"
    assert requests[0].rid == "c-1"
    assert requests[0].sampling == {"max_tokens": 5}


def test_exported_metrics_are_finished_requests() -> None:
    line = {
        "request_parameters": json.dumps({"text": "hi", "stream": True}),
        "id": "m-1",
        "finish_reason": {"type": "stop"},
        "prompt_tokens": 2,
        "completion_tokens": 7,
        "e2e_latency": 2.5,
        "request_received_ts": 1768381200.0,
    }
    requests, dump = read(f"{json.dumps(line)}\n{json.dumps(line)}\n".encode())
    request = requests[0]

    assert dump.format == "request metrics exported by SGLang"
    assert (request.rid, request.state, request.completion_tokens) == ("m-1", "finished", 7)
    assert (request.started_at, request.finished_at) == (1768381200.0, 1768381202.5)


@pytest.mark.parametrize(
    "content", [b"{}", b"[]", b'{"a": 1}\n{"b": 2}', b"null", b"{" * 500], ids=str
)
def test_json_without_a_request_is_unreadable(content: bytes) -> None:
    requests, dump = read(content)

    assert (requests, dump.kind) == ([], "unreadable")
    assert dump.problems


@pytest.mark.parametrize("indent", [None, 2], ids=["one-line", "pretty"])
def test_a_prompt_that_quotes_a_request_log_is_still_a_prompt(indent: int | None) -> None:
    payload = {"text": "why? [2026-01-01] Receive: obj=GenerateReqInput(rid='x')", "stream": True}
    requests, dump = read(json.dumps(payload, indent=indent).encode())

    assert (dump.format, len(requests), requests[0].stream) == ("JSON payload", 1, True)
