"""The title of a dump's page is what the dump comes to, and no more than that."""

from typing import Any

import pytest

from app.domain.dumps.headline import headline, suspected
from app.domain.dumps.recorded import Row
from app.domain.dumps.suspects import suspects


def _row(index: int, state: Any = "finished", **given: Any) -> Row:
    row: Any = {
        "index": index, "rid": f"r{index}", "state": state, "endpoint": "/generate",
        "prompt_tokens": 8, "completion_tokens": 1, "cached_tokens": 0, "prompt_characters": None,
        "stream": False, "started_at": float(index), "finished_at": None, "elapsed_seconds": 1.0,
        "finish_reason": None, "sampling": {}, "features": (), "problems": (), **given,
    }  # fmt: skip
    made: Row = row
    return made


def _document(rows: list[Row], kind: Any = "crash dump") -> dict[str, Any]:
    states = [row["state"] for row in rows]
    return {
        "kind": kind,
        "requests_total": len(rows),
        **{state: states.count(state) for state in ("unfinished", "aborted")},
        "finished": states.count("finished") + states.count("aborted"),
        "not_recorded": states.count(None),
        "suspects": suspects(rows, kind),
    }


WROTE = "when the server wrote this"
IMAGE = "the only one with an image, a video or audio"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        pytest.param(
            [*map(_row, range(4)), _row(4, "unfinished"), _row(5, "unfinished")],
            f"2 of 6 requests were unfinished {WROTE}",
            id="none-is-set-apart",
        ),
        pytest.param(
            [
                *map(_row, range(4)),
                _row(4, "unfinished"),
                _row(5, "unfinished", features=("multimodal",)),
            ],
            f"2 of 6 requests were unfinished {WROTE}; request 5 is {IMAGE}",
            id="one-with-an-image",
        ),
        pytest.param(
            [*map(_row, range(4)), _row(4, "unfinished", features=("multimodal",))],
            f"1 of 5 requests was unfinished {WROTE}; "
            f"request 4 is most likely the trigger: {IMAGE}",
            id="alone-and-odd",
        ),
        pytest.param(
            [*map(_row, range(4)), *(_row(n, "unfinished", prompt_tokens=n) for n in (90, 91))],
            f"2 of 6 requests were unfinished {WROTE}; "
            "request 91 has the longest prompt, 91 tokens",
            id="longest",
        ),
        pytest.param(
            [*map(_row, range(3)), _row(3, features=("lora",)), _row(4, "aborted")],
            "5 requests had ended, 1 of them aborted when the server wrote this crash dump",
            id="nothing-in-flight-however-odd-one-is",
        ),
    ],
)
def test_a_crash_dump_is_told_by_what_was_in_flight(rows: list[Row], says: str) -> None:
    assert headline(_document(rows), "crash.pkl") == says


def test_a_finished_request_is_not_suspected_of_a_crash() -> None:
    rows = [*map(_row, range(3)), _row(3, features=("lora",)), _row(4, "unfinished")]
    told = suspected(_document([*rows, _row(5, "unfinished")]))
    assert told is None


@pytest.mark.parametrize(
    ("document", "says"),
    [
        pytest.param(
            _document([*map(_row, range(3))], "request dump"),
            "3 requests had ended: a request dump never holds what hung",
            id="request-dump",
        ),
        pytest.param(
            _document([_row(0), _row(1, "unfinished")], "request dump"),
            "2 requests, 1 unfinished",
            id="request-dump-that-holds-some",
        ),
        pytest.param(
            _document([_row(0, None), _row(1, None)], "requests"),
            "2 requests to send; how they fared is not recorded",
            id="payloads",
        ),
        pytest.param(
            _document([_row(0), _row(1, "aborted")], "requests"),
            "2 requests: 1 finished, 1 aborted",
            id="requests-of-a-log",
        ),
        pytest.param({"kind": "unreadable"}, "a.pkl cannot be read", id="unreadable"),
        pytest.param(
            {"kind": "unreadable", "requests_total": 1},
            "a.pkl cannot be read; 1 request could be saved",
            id="salvaged",
        ),
    ],
)
def test_other_files_are_told_by_what_they_hold(document: dict[str, Any], says: str) -> None:
    assert headline(document, "a.pkl") == says
