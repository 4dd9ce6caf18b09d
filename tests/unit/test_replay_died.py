"""Whether the target went away, after which request, and who was in flight."""

import pytest

from app.domain.replay.died import death
from app.domain.replay.outcomes import Outcome
from tests.replays import BEGAN, outcome


def crash(at: int = 5, count: int = 10) -> list[Outcome]:
    """Requests a second apart, each taking a second and a half; the target dies half a second
    after request *at* was sent.
    """
    made = [outcome(index, e2e_seconds=1.5) for index in range(at - 1)]
    made += [
        outcome(index, "connection-reset", e2e_seconds=at + 0.5 - index) for index in (at - 1, at)
    ]
    made += [
        outcome(index, "connection-refused", e2e_seconds=0.001) for index in range(at + 1, count)
    ]
    return made


def test_the_last_request_before_it_is_named_and_those_in_flight() -> None:
    found = death(crash())

    assert found is not None
    assert (found.last_sent, found.in_flight, found.certain) == (5, (4, 5), True)
    assert found.at == pytest.approx(BEGAN + 5.5)
    assert found.says == "The target went away after request 5, while 2 were in flight."


def test_a_target_that_comes_back_went_away_all_the_same() -> None:
    found = death([*crash(), outcome(20)])

    assert found is not None
    assert found.back_at == BEGAN + 20
    assert found.restarted
    assert found.says.endswith(
        "It was back 14.5 s later, restarted: nothing had listened in between."
    )


def test_one_cut_connection_while_others_go_on_is_no_death() -> None:
    made = [outcome(0, e2e_seconds=9.0), outcome(1, "stream-cut"), outcome(2), outcome(3)]

    assert death(made) is None
    assert death(made[1:]) is None


def test_after_a_cut_connection_the_true_end_is_still_found() -> None:
    cut = [outcome(100, at=-30.0), outcome(101, "stream-cut", at=-20.0), outcome(102, at=-10.0)]
    found = death([*cut, *crash()])

    assert found is not None
    assert found.last_sent == 5


@pytest.mark.parametrize(
    ("after", "certain"), [("unknown", False), ("down", True), ("up", None), ("wedged", None)]
)
def test_connections_lost_at_the_very_end_are_judged_by_how_it_was_found(
    after: str, certain: bool | None
) -> None:
    made = [outcome(0), outcome(1, "connection-reset")]
    found = death(made, after=after)  # type: ignore[arg-type]

    assert (None if found is None else found.certain) is certain


def test_a_target_that_never_answered_did_not_die_of_this() -> None:
    refused = [outcome(index, "connection-refused") for index in range(3)]

    assert death(refused) is None
    assert death(refused, up_before=True, after="down") is None


def test_the_first_request_alone_can_kill_a_target_that_was_seen_alive() -> None:
    alone = [outcome(343, "connection-reset")]
    found = death(alone, up_before=True, after="down")

    assert death(alone, after="down") is None
    assert found is not None
    assert (found.last_sent, found.in_flight) == (343, (343,))


def test_requests_that_waited_in_vain_are_in_flight_until_then() -> None:
    made = [*crash(), outcome(50, "cancelled", at=4.9, e2e_seconds=0.6)]
    found = death(made)

    assert found is not None
    assert 50 in found.in_flight


@pytest.mark.slow
def test_an_end_among_a_hundred_thousand_requests_is_found_at_once() -> None:
    found = death(crash(90_000, 100_000))

    assert found is not None
    assert found.last_sent == 90_000
