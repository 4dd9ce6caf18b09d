"""Standstills of the loop that sends."""

from app.clients.lag import Lag


def noted(*pairs: tuple[float, float]) -> Lag:
    lag = Lag()
    for at, seconds in pairs:
        lag.note(at, seconds)
    return lag


def test_the_longest_since_a_moment_is_found_whatever_came_before_and_after() -> None:
    lag = noted((1, 0.5), (2, 0.1), (3, 0.3), (4, 0.2), (5, 0.0))
    assert [lag.longest_since(moment) for moment in (0.5, 1.5, 3.5, 4.5, 5.5)] == [
        0.5, 0.3, 0.2, 0.0, 0.0,
    ]  # fmt: skip


def test_nothing_noted_is_no_standstill() -> None:
    assert Lag().longest_since(0.0) == 0.0


def test_what_it_keeps_is_bounded_and_the_newest_stay() -> None:
    lag = noted(*((n, 1.0 / (n + 1)) for n in range(20_000)))
    assert lag.longest_since(19_999) == 1.0 / 20_000
    assert lag.longest_since(0) > 0
