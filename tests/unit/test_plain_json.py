import orjson
import pytest

from app.domain.plain_json import read_json
from app.errors import Malformed


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 100_000, id="deep-and-open"),
        pytest.param(b"[" * 70 + b"]" * 70, id="deeper-than-64"),
        pytest.param(b'{"a":' + b"9" * 100_000 + b"}", id="100k-digits"),
        pytest.param(b'{"a":"\\ud800"}', id="lone-surrogate"),
        pytest.param(b'{"a":NaN}', id="nan"),
        pytest.param(b'{"a":1e999}', id="infinite"),
        pytest.param(b'{"a":"\xff"}', id="not-utf-8"),
        pytest.param(b"<html>", id="html"),
        pytest.param(b"", id="empty"),
    ],
)
def test_what_cannot_be_written_again_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_json(body)


@pytest.mark.parametrize(
    "body",
    [b"null", b"[1,2]", b'{"a":{"b":[true,1.5,"x"]}}', b"123456789012345678901234567890", b"[]"],
)
def test_what_was_read_is_valid_json_again(body: bytes) -> None:
    assert orjson.loads(orjson.dumps(read_json(body))) == read_json(body)


def test_the_depth_that_is_allowed_is_read() -> None:
    assert read_json(b"[" * 64 + b"]" * 64)
    with pytest.raises(Malformed, match="deeper than 3"):
        read_json(b'{"a":{"b":{"c":{"d":1}}}}', max_depth=3)
