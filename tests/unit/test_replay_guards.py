"""What stands against a replay before the first request, and what a person can confirm."""

from typing import Any

import pytest

from app.domain.loads import Loads, read_loads
from app.domain.replay.guards import Asked, refusals, strangers, to_type


def loads(running: int = 0, waiting: int = 0, age: float = 0.1, ranks: int = 1) -> Loads:
    """The load of a target, *age* seconds old."""
    each = {
        "num_running_reqs": running, "num_waiting_reqs": waiting, "timestamp": 1000.0 - age,
    }  # fmt: skip
    told = {"timestamp": 1000.0, "loads": [{**each, "dp_rank": rank} for rank in range(ranks)]}
    found = read_loads("loads", told)
    assert found is not None
    return found


def kinds(typed: str | None = None, **asked: Any) -> list[str]:
    told = {"name": "debug-1", "clean": True, "loads": loads(), **asked}
    return [one.kind for one in refusals(Asked(**told), typed)]


def test_a_clean_and_idle_target_may_be_replayed_to() -> None:
    assert kinds() == []


@pytest.mark.parametrize(
    ("asked", "kind", "confirmable"),
    [
        ({"loads": loads(running=3)}, "strangers", False),
        ({"loads": loads(waiting=1)}, "strangers", False),
        ({"disaggregation": "decode"}, "split-engine", False),
        ({"clean": False}, "not-clean", True),
        ({"loads": None}, "load-unknown", True),
        ({"loads": loads(age=60.0)}, "load-unknown", True),
    ],
    ids=["running", "waiting", "engine", "not clean", "no loads", "stale loads"],
)
def test_typing_the_name_answers_some_refusals_and_never_people_on_the_target(
    asked: dict[str, Any], kind: str, *, confirmable: bool
) -> None:
    assert kinds(**asked) == [kind]
    assert kinds("debug-1", **asked) == ([] if confirmable else [kind])
    assert kinds("debug-2", **asked) == [kind]


def test_our_own_requests_are_no_strangers() -> None:
    assert strangers(loads(running=2, ranks=2), own=4) == 0
    assert strangers(loads(running=2, ranks=2), own=3) == 1
    assert strangers(None) is None


def test_the_server_of_the_recording_is_named_as_such() -> None:
    asked = Asked("rollout-3", clean=False, of_recording=True, loads=loads())

    assert refusals(asked)[0].says == (
        "rollout-3 is not marked as clean, and the requests were recorded on it."
    )


def test_a_person_reads_what_typing_the_name_does() -> None:
    assert to_type(Asked("debug-1", clean=False), 500) == (
        "This sends 500 requests to debug-1, which may bring it down. Type debug-1 to send them."
    )
