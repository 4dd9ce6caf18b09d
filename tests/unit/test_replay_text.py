"""What ``replay`` prints before it asks for the consent to send."""

from app.cli.replay_text import plan_text
from app.domain.replay.options import Mode, Options, TargetFacts
from app.domain.replay.plan import plan
from tests.replays import recorded_request

MANY = [f"of_another_fork_{number}" for number in range(40)]


def _told(mode: Mode = "open") -> str:
    payload = {"text": "x", **dict.fromkeys(MANY, 1)}
    return plan_text(
        plan([recorded_request(0, payload=payload)], Options(mode=mode), TargetFacts())
    )


def test_all_that_is_stripped_is_shown_however_much_it_is() -> None:
    assert [name for name in MANY if f"  {name} (1)" not in _told()] == []


def test_a_length_is_told_only_where_the_recorded_times_make_one() -> None:
    assert " over 0.0 s" in _told()
    assert " over " not in _told("flat-out").splitlines()[0]
