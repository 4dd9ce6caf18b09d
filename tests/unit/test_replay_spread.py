"""A trial in pictures: what is drawn, what becomes a density, and what is only counted."""

from typing import Any

import pytest

from app.domain.replay.outcomes import ERROR_CLASSES, ErrorClass
from app.domain.replay.readings import level_of, name_of, reading
from app.domain.replay.spread import MOST_MARKS, MOST_OUTLIERS, Row, spread
from app.web.replay_pictures import late_bars, scatter


def _row(position: int = 0, **told: Any) -> Row:
    usual: dict[str, Any] = {
        "position": position, "state": "completed", "error": None, "sent_at": float(position),
        "lateness_ms": 1.0, "e2e_seconds": 1.0, "prompt_tokens": 7, "completion_tokens": 4,
        "recorded_state": "finished", "recorded_e2e_seconds": 1.0, "recorded_prompt_tokens": 7,
        "recorded_completion_tokens": 4,
    }  # fmt: skip
    return Row(**{**usual, **told})


def test_an_answer_that_is_slower_than_noise_explains_stands_out() -> None:
    told = spread([_row(e2e_seconds=1.2), _row(1, e2e_seconds=1.4)], noise=0.25)

    assert told.counts == {"answered": 1, "slower": 1}
    assert [mark.index for mark in told.marks if mark.kind == "slower"] == [1]


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"completion_tokens": 9}, id="a-longer-answer"),
        pytest.param({"recorded_completion_tokens": None}, id="a-length-that-is-not-known"),
        pytest.param({"recorded_state": "unfinished"}, id="one-that-was-not-recorded-to-its-end"),
        pytest.param({"recorded_e2e_seconds": None}, id="no-recorded-time"),
    ],
)
def test_what_cannot_be_compared_is_never_called_slower(told: dict[str, Any]) -> None:
    assert spread([_row(e2e_seconds=5.0, **told)], noise=0.25).counts == {"answered": 1}


def test_what_never_reached_the_target_is_counted_and_not_drawn() -> None:
    refused = _row(1, state="failed", error="connection-refused")
    reset = _row(2, state="failed", error="connection-reset")
    not_sent = _row(3, state="not sent", error="not-sent", sent_at=None)

    told = spread([refused, reset, not_sent])

    assert told.counts == {"unreached": 1, "failed": 1}
    assert [(mark.index, mark.replayed) for mark in told.marks] == [(2, None)]
    assert "1 never reached it: not drawn" in scatter(told).told


def test_few_requests_are_marks_and_very_many_are_a_density_with_their_outliers() -> None:
    few = spread(_row(n) for n in range(MOST_MARKS))
    many = spread(
        _row(n, e2e_seconds=9.0 if n % 10 == 0 else 1.0) for n in range(5 * MOST_OUTLIERS * 10)
    )

    assert (len(few.marks), few.cells) == (MOST_MARKS, [])
    assert {mark.kind for mark in many.marks} == {"slower"}
    assert len(many.marks) == MOST_OUTLIERS
    assert sum(cell.count for cell in many.cells) == many.counts["answered"]
    assert len(scatter(many).dots) + len(scatter(many).slower) < 20_000


def test_lateness_is_binned_up_to_the_budget_and_what_is_beyond_it_stands_apart() -> None:
    told = spread(_row(n, lateness_ms=late) for n, late in enumerate((0.0, 2.6, 24.9, 25.1, 900.0)))

    assert told.late_bins == [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2]
    assert told.beyond == 2
    assert [bar.beyond for bar in late_bars(told).bars] == [False, False, False, True]


def test_lengths_are_compared_only_where_both_are_told() -> None:
    rows = [_row(), _row(1, prompt_tokens=8), _row(2, recorded_prompt_tokens=None)]

    told = spread(rows)

    assert (told.prompts.equal, told.prompts.of) == (1, 2)


def test_how_many_were_in_flight_at_once_is_told_by_their_ends() -> None:
    rows = [_row(0, e2e_seconds=2.5), _row(1, e2e_seconds=1.2), _row(2, e2e_seconds=0.1)]

    assert spread(rows).in_flight == 3


def test_a_trial_without_outcomes_has_empty_axes() -> None:
    told = spread([])

    assert scatter(told).dots == ""
    assert scatter(told).ticks
    assert "nothing was sent" in late_bars(told).says


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e9, 0.001, 3600.0])
def test_no_time_leaves_the_picture(seconds: float) -> None:
    picture = scatter(spread([_row(e2e_seconds=seconds), _row(1, recorded_e2e_seconds=seconds)]))

    places = [float(part.split(" ")[0]) for part in picture.dots.split("M")[1:]]
    assert all(58 <= x <= 592 for x in places)


@pytest.mark.parametrize("error", ERROR_CLASSES)
def test_every_class_of_failures_has_a_name_a_mark_and_a_reading(error: ErrorClass) -> None:
    assert name_of(error)
    assert level_of(error) in ("quiet", "warn", "bad")
    assert reading(error, died=False, as_recorded=True)


def test_a_refused_connection_is_read_by_whether_the_target_went_away() -> None:
    said = [reading("connection-refused", died=one, as_recorded=True) for one in (True, False)]

    assert said == ["after it: the target was gone", "the target did not listen"]
