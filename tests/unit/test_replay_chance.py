"""How much it is worth that something was not seen."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.replay.chance import chance_of_none, none_seen, rate_excluded, trials_needed
from tests.captured import CASES, needs


def test_twenty_requests_prove_nothing_about_a_rate_of_one_and_a_half_percent() -> None:
    folder = needs(CASES / "25-wrong-output-ab-matrix")
    with (folder / "ab.csv").open() as file:
        runs = list(csv.DictReader(file))
    on = [run for run in runs if run["hicache"] == "on" and int(run["requests"]) == 400]
    rate = sum(int(run["garbled"]) for run in on) / sum(int(run["requests"]) for run in on)
    fifth = next(run for run in runs if run["run"] == "5")

    says = none_seen(int(fifth["requests"]), rate, "request", "requests")
    assert rate == pytest.approx(0.01625)
    assert says.startswith(
        "None in 20 requests proves nothing: at a rate of 1.6 %, 20 requests would show none 72 %"
        " of the time."
    )
    assert "183 requests are needed" in says


def test_four_hundred_requests_do_speak_against_it() -> None:
    assert "speaks against it" in none_seen(400, 0.01625, "request", "requests")


def test_without_a_known_rate_it_is_said_which_rates_stay_possible() -> None:
    assert none_seen(3, None, "trial", "trials") == (
        "None in 3 trials: that speaks only against a fault that comes in at least 63 % of trials."
        " A rarer one may still be there."
    )
    assert none_seen(0, None, "trial", "trials") == "No trial was sent, which says nothing."


@given(st.floats(1e-6, 0.999), st.floats(0.5, 0.999))
def test_as_many_as_are_needed_are_enough_and_one_fewer_is_not(rate: float, sure: float) -> None:
    needed = trials_needed(rate, sure)

    assert needed is not None
    assert chance_of_none(rate, needed) <= 1 - sure + 1e-9
    assert needed == 1 or chance_of_none(rate, needed - 1) > 1 - sure - 1e-9


@given(st.integers(1, 10_000))
def test_a_rate_that_is_excluded_would_have_been_seen(trials: int) -> None:
    assert chance_of_none(rate_excluded(trials), trials) == pytest.approx(0.05)


@pytest.mark.parametrize(("rate", "needed"), [(0.0, None), (1.0, 1), (0.5, 5)])
def test_the_ends_of_the_scale(rate: float, needed: int | None) -> None:
    assert trials_needed(rate) == needed
