"""A curl command is read as the request that it would send, and never more than that."""

import shlex
from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.curl import is_curl, read_curl
from app.errors import ConsoleError, Malformed, Rejected

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)
URL = "http://gpu-14:30000/generate"


@given(TEXT, TEXT, st.sampled_from(["-d", "--data", "--data-raw", "--data-binary", "--json"]))
def test_any_body_comes_back_as_it_was_quoted(prompt: str, key: str, option: str) -> None:
    body = orjson.dumps({"text": prompt, "key": key}).decode()
    curl = read_curl(shlex.join(["curl", URL, option, body, "-H", "X-Key: abc"]))
    assert (curl.body, curl.url, curl.method) == (body, URL, "POST")
    assert curl.headers == {"x-key": "abc"}


@given(st.lists(st.sampled_from(["-X", "-H", "a: b", "-d", "x", "@f", URL, "-sS", "--url", "-o"])))
def test_any_words_are_a_request_or_a_reason(words: list[str]) -> None:
    with suppress(Malformed, Rejected):
        assert read_curl(shlex.join(["curl", *words])).url


@pytest.mark.parametrize(
    ("text", "method", "body"),
    [
        pytest.param(f"curl {URL}", "GET", None, id="get"),
        pytest.param(f"$ curl -sS -k '{URL}' -d x", "POST", "x", id="prompt-before-it"),
        pytest.param(f"curl -XPUT {URL} -dx -d y", "PUT", "x&y", id="written-together"),
        pytest.param(f"curl --request=POST --url={URL} --json=1 --json 2", "POST", "12", id="long"),
        pytest.param(f"curl {URL} --data-raw @x", "POST", "@x", id="raw-at-sign"),
        pytest.param(f"curl -m 5 -o out {URL} -d x", "POST", "x", id="passed-over"),
        pytest.param(f"curl \\\n {URL} \\\n -d x", "POST", "x", id="several-lines"),
    ],
)
def test_what_it_would_send(text: str, method: str, body: str | None) -> None:
    assert is_curl(text)
    curl = read_curl(text)
    assert (curl.method, curl.body, curl.url) == (method, body, URL)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(f"curl {URL} -d @body.json", "reads a file, @body.json", id="file"),
        pytest.param(f"curl {URL} --json @-", "reads a file", id="stdin"),
        pytest.param(f"curl {URL} --data-binary @b", "reads a file", id="binary-file"),
        pytest.param(f"curl {URL} -H @headers", "reads a file", id="header-file"),
        pytest.param(f"curl {URL} -K rc", "-K is not known", id="config"),
        pytest.param(f"curl {URL} -F a=b", "-F is not known", id="form"),
        pytest.param(f"curl {URL} --upload-file x", "not known", id="upload"),
        pytest.param("curl -d x", "names 0 URLs", id="no-url"),
        pytest.param(f"curl {URL} {URL}", "names 2 URLs", id="two-urls"),
        pytest.param(f"curl {URL} -d", "needs a value", id="no-value"),
        pytest.param("wget x", "no curl command", id="other"),
        pytest.param("", "no curl command", id="empty"),
    ],
)
def test_what_cannot_be_read_as_one_request_says_why(text: str, says: str) -> None:
    with pytest.raises(ConsoleError, match=says):
        read_curl(text)


def test_credentials_do_not_show_when_it_is_printed() -> None:
    curl = read_curl(f"curl -u mira:secret1 -H 'Authorization: Bearer secret2' {URL} -d secret3")
    assert "secret" not in repr(curl)
