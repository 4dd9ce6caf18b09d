"""When a set of requests counts as failing: by more than one witness, on a fresh target."""

import pytest

from app.domain.replay.judging import Run, Says, decided

FAILS, PASSES, UNKNOWN = (Run(says, fresh=True) for says in ("fails", "passes", "unknown"))
DIED = Run("fails", fresh=True, died=True)
USED = Run("fails", fresh=False, died=True)
UNSENT = Run("fails", fresh=True, took_part=False)


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        pytest.param([PASSES], "passes", id="one pass is a pass"),
        pytest.param([DIED], "fails", id="check and death are two witnesses"),
        pytest.param([FAILS], None, id="the check alone is one witness"),
        pytest.param([FAILS, FAILS], "fails", id="the check twice"),
        pytest.param([FAILS, PASSES], None, id="one against one"),
        pytest.param([FAILS, PASSES, PASSES], "passes", id="two against one"),
        pytest.param([FAILS, PASSES, FAILS], "fails", id="one against two"),
        pytest.param([USED], None, id="a used target proves nothing"),
        pytest.param([USED, PASSES], "passes", id="what came before did it"),
        pytest.param([USED, DIED], "fails", id="on a fresh one too"),
        pytest.param([UNKNOWN], None, id="one unknown"),
        pytest.param([UNKNOWN, UNKNOWN], "unknown", id="unknown is not failing"),
        pytest.param([UNKNOWN, DIED], "fails", id="known at last"),
        pytest.param([UNSENT], None, id="nothing arrived"),
        pytest.param([UNSENT, UNSENT], "unknown", id="nothing arrives"),
    ],
)
def test_a_set_fails_by_what_was_seen_more_than_once(runs: list[Run], says: Says | None) -> None:
    assert decided(runs, restarts=True) == says


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        pytest.param([USED], None, id="once"),
        pytest.param([USED, USED], "fails", id="twice"),
        pytest.param([Run("fails", fresh=None, died=True)], None, id="not known to be fresh"),
        pytest.param([DIED], "fails", id="somebody else restarted it"),
    ],
)
def test_without_a_way_to_restart_it_a_used_target_is_all_there_is(
    runs: list[Run], says: Says | None
) -> None:
    assert decided(runs, restarts=False) == says


def test_a_fault_that_comes_now_and_then_gets_as_many_chances_as_asked_for() -> None:
    assert decided([PASSES, PASSES], restarts=True, trials=3) is None
    assert decided([PASSES, PASSES, DIED], restarts=True, trials=3) == "fails"
    assert decided([PASSES, PASSES, PASSES], restarts=True, trials=3) == "passes"


def test_a_check_that_cannot_make_up_its_mind_is_not_asked_for_ever() -> None:
    runs: list[Run] = []
    while decided(runs, restarts=True, trials=20) is None:
        runs.append(FAILS if len(runs) % 40 == 39 else PASSES if len(runs) % 2 else UNKNOWN)
    assert len(runs) < 50
