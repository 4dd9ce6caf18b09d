"""Finding the place that a claim rests on in a captured body."""

import pytest

from app.web.places import LONGEST_LINE, shown

LOADS = b'{"version":"0.5.23","loads":[{"dp_rank":0},{"dp_rank":1,"memory":{"a/b":1}}]}'
METRICS = (
    b"# HELP sglang:num_requests_total n\n"
    b'sglang:num_requests_total{dp_rank="0"} 5\n'
    b'sglang:num_requests_total{dp_rank="1"} 6\n'
    b'sglang:ttft_seconds_bucket{le="0.1"} 2\n'
)


@pytest.mark.parametrize(
    ("body", "at", "marked"),
    [
        pytest.param(LOADS, "/version", ['  "version": "0.5.23",'], id="a-value"),
        pytest.param(
            LOADS, "/loads/0", ["    {", '      "dp_rank": 0', "    },"], id="an-object-as-a-whole"
        ),
        pytest.param(LOADS, "/loads/1/memory/a~1b", ['        "a/b": 1'], id="an-escaped-key"),
        pytest.param(
            LOADS,
            "/loads/*/dp_rank",
            ['      "dp_rank": 0', '      "dp_rank": 1,'],
            id="the-same-in-every-rank",
        ),
        pytest.param(LOADS, "/loads/7", [], id="nothing-there"),
        pytest.param(
            METRICS,
            'sglang:num_requests_total{dp_rank="1"}',
            ['sglang:num_requests_total{dp_rank="1"} 6'],
            id="a-series",
        ),
        pytest.param(
            METRICS,
            "sglang:num_requests_total",
            [
                'sglang:num_requests_total{dp_rank="0"} 5',
                'sglang:num_requests_total{dp_rank="1"} 6',
            ],
            id="every-series-of-a-name",
        ),
        pytest.param(
            METRICS,
            "sglang:ttft_seconds",
            ['sglang:ttft_seconds_bucket{le="0.1"} 2'],
            id="a-histogram-by-its-family",
        ),
        pytest.param(b"a\nb\nc", "line 2", ["b"], id="a-line"),
    ],
)
def test_a_place_is_marked(body: bytes, at: str, marked: list[str]) -> None:
    part = shown(body, at)

    assert [line.text for line in part.lines if line.marked] == marked
    assert part.found is bool(marked)


def test_a_far_place_is_shown_with_what_stands_around_it_only() -> None:
    body = "\n".join(f"series_{number} 1" for number in range(100_000)).encode()

    part = shown(body, "series_70000")

    assert part.first_marked == 70_001
    assert len(part.lines) == 500
    assert part.total_lines == 100_000
    assert not part.whole


def test_how_asking_went_is_no_place_in_the_body() -> None:
    assert shown(b"status 200", "status").found is None


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    part = shown(b"\x1b]0;owned\x07 \xff " + b"x" * 5000, "")

    [line] = part.lines
    assert line.text.startswith("\\x1b]0;owned\\x07 \ufffd")
    assert line.text.endswith("more characters)")
    assert len(line.text) < LONGEST_LINE + 100


def test_broken_json_is_shown_as_it_came() -> None:
    part = shown(b'{"a": 1,\n "b": ', "/a")

    assert [line.text for line in part.lines] == ['{"a": 1,', ' "b": ']
    assert not part.laid_out
    assert part.found is False
