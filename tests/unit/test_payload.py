"""The exact request is kept as one line of JSONL, without credentials."""

from typing import Any

import orjson
import pytest

from app.domain.payload import MAX_BYTES, saved_request
from app.domain.redaction import keyed_fingerprint
from app.errors import ConsoleError

FINGERPRINT = keyed_fingerprint(b"key")


def _kept(text: str, endpoint: str | None = None, *secrets: str) -> dict[str, Any]:
    saved = saved_request(text, fingerprint=FINGERPRINT, endpoint=endpoint, secrets=secrets)
    assert saved.line.count(b"\n") == 1
    line: dict[str, Any] = orjson.loads(saved.line)
    return line


@pytest.mark.parametrize(
    ("payload", "endpoint"),
    [
        pytest.param({"messages": []}, "/v1/chat/completions", id="chat"),
        pytest.param({"prompt": "a"}, "/v1/completions", id="completions"),
        pytest.param({"text": "a", "rid": "r1"}, "/generate", id="text"),
        pytest.param({"input_ids": [1, 2]}, "/generate", id="ids"),
    ],
)
def test_json_alone_tells_its_endpoint(payload: dict[str, Any], endpoint: str) -> None:
    assert _kept(orjson.dumps(payload).decode()) == {
        "index": 0,
        "rid": payload.get("rid"),
        "endpoint": endpoint,
        "payload": payload,
    }


def test_a_curl_command_gives_its_body_and_nothing_else() -> None:
    text = (
        "curl https://mira:geheim@gate/prefix/v1/completions?key=geheim -u a:geheim "
        "-H 'Authorization: Bearer geheim' -d '{\"prompt\": \"Say hi\"}'"
    )
    saved = saved_request(text, fingerprint=FINGERPRINT, secrets=())
    assert b"geheim" not in saved.line
    assert orjson.loads(saved.line)["endpoint"] == "/v1/completions"
    assert saved.left_out == ("authorization", "user")


def test_a_line_that_is_one_already_stays_one() -> None:
    line = {"index": 7, "rid": "r", "endpoint": "/generate", "payload": {"text": "a"}}
    assert _kept(orjson.dumps(line).decode()) == {**line, "index": 0}


def test_secrets_are_masked_by_name_and_ours_wherever_they_stand() -> None:
    text = '{"text": "the key is sk-abc12345", "api_key": "hidden", "x": [{"hf_token": "hidden"}]}'
    saved = saved_request(text, fingerprint=FINGERPRINT, secrets=("sk-abc12345",))
    payload = orjson.loads(saved.line)["payload"]
    assert saved.redacted == ("/text", "/api_key", "/x/0/hf_token")
    assert b"hidden" not in saved.line
    assert b"sk-abc12345" not in saved.line
    assert payload["text"].startswith("the key is ‹redacted:")


def test_a_prompt_stays_as_it_is() -> None:
    prompt = "password=hunter2 and https://user:pw@host/?token=1"
    assert _kept(orjson.dumps({"text": prompt}).decode())["payload"]["text"] == prompt


@pytest.mark.parametrize(
    ("text", "endpoint", "says"),
    [
        pytest.param("[1]", None, "JSON object", id="list"),
        pytest.param("{", None, "Not JSON", id="broken"),
        pytest.param('{"a": 1}', None, "neither messages", id="no-request"),
        pytest.param('{"text": "a"}', "/flush_cache", "no endpoint", id="other-endpoint"),
        pytest.param("curl http://h/flush_cache -d '{}'", None, "no endpoint", id="other-url"),
        pytest.param("curl http://h/generate", None, "no body", id="no-body"),
        pytest.param('{"endpoint": "/x", "payload": {}}', None, "no known endpoint", id="line"),
        pytest.param('{"endpoint": [1], "payload": {}}', None, "no known endpoint", id="odd-line"),
        pytest.param('{"text": "\ud800"}', None, "Not JSON", id="half-a-character"),
        pytest.param("x" * (MAX_BYTES + 1), None, "more than 3 MiB", id="large"),
        pytest.param('{"text":' * 70 + "1" + "}" * 70, None, "nested deeper", id="deep"),
    ],
)
def test_what_is_no_request_says_why(text: str, endpoint: str | None, says: str) -> None:
    with pytest.raises(ConsoleError, match=says):
        _kept(text, endpoint)
