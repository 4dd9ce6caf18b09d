"""Lengths and arrivals are counted for pictures; the pictures say what they show."""

from datetime import UTC, datetime

import pytest

from app.domain.dumps.spread import ARRIVAL_BARS, Shape, spread
from app.web.dump_pictures import ARRIVALS_FOOT, LENGTHS_FOOT, TOP, arrival_picture, pictures

START = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


def _shape(
    prompt: int | None = 8,
    started: float | None = 0.0,
    *,
    elapsed: float | None = 1.0,
    unfinished: bool = False,
) -> Shape:
    at = None if started is None else START + started
    return prompt, None, at, elapsed, "unfinished" if unfinished else "finished"


@pytest.mark.parametrize(
    ("length", "bar"),
    [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (7, 3),
        (8, 4),
        (1023, 10),
        (1024, 11),
        (2**63 - 1, 63),
    ],
)
def test_lengths_are_counted_by_their_binary_digits(length: int, bar: int) -> None:
    bars = spread([_shape(length)])["prompt_tokens"]["bars"]
    assert bars == [(0, 0)] * bar + [(1, 0)]


def test_what_is_not_known_is_counted_apart_and_not_as_zero() -> None:
    told = spread([_shape(None, None, unfinished=True), _shape(None), _shape(0)])
    prompts, completions = told["prompt_tokens"], told["completion_tokens"]
    assert (prompts["bars"], prompts["unknown"]) == ([(1, 0)], (2, 1))
    assert (completions["bars"], completions["unknown"]) == ([], (3, 1))
    assert told["arrivals"]["unknown"] == (1, 1)


def test_arrivals_reach_to_the_moment_of_the_dump() -> None:
    shapes = [
        _shape(started=0),
        _shape(started=59),
        _shape(started=60, elapsed=60, unfinished=True),
    ]
    told = spread(shapes)["arrivals"]
    assert (told["since"], told["until"]) == (START, START + 120)
    assert told["written_at"] == START + 120
    assert len(told["bars"]) == ARRIVAL_BARS
    assert [place for place, bar in enumerate(told["bars"]) if bar[0]] == [0, 59, 60]
    assert told["bars"][60] == (1, 1)


@pytest.mark.parametrize(
    ("shapes", "bars"),
    [
        pytest.param([], [], id="no-requests"),
        pytest.param([_shape(started=None)], [], id="no-time"),
        pytest.param([_shape(), _shape()], [(2, 0)], id="one-moment"),
    ],
)
def test_arrivals_without_a_span_are_no_more_than_they_are(
    shapes: list[Shape], bars: list[tuple[int, int]]
) -> None:
    assert spread(shapes)["arrivals"]["bars"] == bars


def test_a_time_before_all_calendars_draws_nothing() -> None:
    arrivals = spread([_shape(started=-1e15)])["arrivals"]
    assert arrival_picture(arrivals) is None


def test_bars_stand_on_the_axis_and_the_highest_reaches_the_line() -> None:
    shapes = [_shape(10, started=n / 9, unfinished=n % 3 == 0) for n in range(9)]
    drawn = pictures(
        spread([*shapes, _shape(None)]), {"prompt_tokens": {"n": 9, "p50": 10, "max": 10}}
    )
    arrivals, prompts = drawn
    assert [one.title for one in drawn] == ["Arrivals", "Prompt tokens"]
    for picture, foot in ((arrivals, ARRIVALS_FOOT), (prompts, LENGTHS_FOOT)):
        assert min(bar.top for bar in picture.bars) == pytest.approx(TOP, abs=0.2)
        assert all(bar.top + bar.height <= foot + 0.2 for bar in picture.bars)
    ended, unfinished, unknown = prompts.bars
    assert (ended.style, unfinished.style, unknown.style) == ("", "warn", "void")
    assert ended.top == pytest.approx(unfinished.top + unfinished.height)
    assert ended.title == "8 to 15 tokens: 6 requests"
    assert prompts.says == "p50 10 · max 10, of 9 requests. Of 1 the file does not tell."


def test_the_arrivals_say_when_the_dump_was_written() -> None:
    picture = arrival_picture(
        spread([_shape(), _shape(started=4, elapsed=6, unfinished=True)])["arrivals"]
    )
    assert picture is not None
    assert picture.written == "100%"
    assert picture.ticks[-1].text == "dump written 12:00:10.000"
    assert picture.says == (
        "2 requests came, at most 1 request in 83 ms; 1 was unfinished when it was written."
    )
