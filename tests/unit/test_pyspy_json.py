"""Whether bytes are what py-spy writes."""

from typing import Any

import orjson
import pytest

from app.domain.pyspy_json import thread_count
from app.errors import Malformed

FRAME = {"name": "f", "filename": "/a.py", "line": 3, "locals": None}
THREAD = {"pid": 7, "thread_id": 1, "active": True, "owns_gil": False, "frames": [FRAME]}


def test_its_threads_are_counted() -> None:
    assert thread_count(orjson.dumps([THREAD, {**THREAD, "frames": []}]), pid=7) == 2


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        pytest.param({}, "Not a list", id="no-list"),
        pytest.param(["thread"], "Not a list", id="a-list-of-something-else"),
        pytest.param([], "0 threads", id="no-thread"),
        pytest.param([{**THREAD, "pid": 8}], "another process", id="another-process"),
        pytest.param([{**THREAD, "thread_id": None}], "thread_id", id="no-thread-id"),
        pytest.param([{**THREAD, "active": 1}], "active", id="no-flag"),
        pytest.param([{**THREAD, "frames": None}], "frames", id="no-frames"),
        pytest.param([{**THREAD, "frames": [{"name": "f"}]}], "frames", id="half-a-frame"),
        pytest.param(
            [{**THREAD, "frames": [{**FRAME, "locals": [{"name": "api_key"}]}]}],
            "values of variables",
            id="locals-are-refused",
        ),
    ],
)
def test_what_is_something_else_is_refused(told: Any, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        thread_count(orjson.dumps(told), pid=7)


def test_what_is_cut_off_is_refused() -> None:
    with pytest.raises(Malformed, match="Not JSON"):
        thread_count(orjson.dumps([THREAD])[:-5], pid=7)
